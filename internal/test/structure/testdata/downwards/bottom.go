package downwards

func step(int) {}
