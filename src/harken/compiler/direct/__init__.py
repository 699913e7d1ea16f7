"""Texts straight to the compiled form, by kernels alone: read, rewritten and written out, whatever their shapes.

A kernel runs the grammar's own tables over all texts (`parsing`), pushes NOT inward and multiplies out
(`rewriting`), merges constraints into boxes (`constraints`, `clauses`) and writes columns (`writing`), just as
`harken.language` and `harken.normal` do with objects. It **declines** a text wherever it is not sure: an error, a
pattern, a shape, a timestamp, a comment, a character that is not ASCII outside of strings, or more of anything
than there is room for. Whoever called it then takes another way; so nothing here makes an error, or knows one.
"""
