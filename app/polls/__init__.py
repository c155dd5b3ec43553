"""Ask a class a question, take its answers and count them, without a word of who gave which."""
