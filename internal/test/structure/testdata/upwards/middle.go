package upwards

func (t *task) step() {
	do := finish
	do()
}
