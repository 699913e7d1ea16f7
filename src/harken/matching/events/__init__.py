"""Events as they come: dictionaries, Arrow tables and frames go in, checked columns come out.

Knows the types of the language, and nothing of subscriptions but the attributes that they mention.
"""
