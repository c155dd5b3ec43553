"""What a class shares: a question with counted answers, and the place that the teacher is at."""
