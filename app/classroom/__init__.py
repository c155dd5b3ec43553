"""Share a question with counted answers and the teacher's place with a class."""
