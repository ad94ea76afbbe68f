"""Normal forms: the rules that bring a function to the form in which it is differentiated."""
