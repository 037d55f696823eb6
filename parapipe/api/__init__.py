"""The verbs and nouns that `import parapipe` offers, one file each."""
