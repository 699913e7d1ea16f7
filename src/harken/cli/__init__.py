"""The command line: thin verbs over the public API, one file each."""
