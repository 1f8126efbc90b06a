package upwards

var title = name()

func finish() {}
