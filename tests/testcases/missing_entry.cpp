int something_else() { return 0; }
