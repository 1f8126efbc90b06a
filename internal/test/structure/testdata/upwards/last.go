package upwards

func last() {}
