"""Draw several runs beside each other, or beside what was published."""
