//go:build race

package schedule

const raceDetector = true
