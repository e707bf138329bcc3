//go:build race

package recordpipe

const raceEnabled = true
