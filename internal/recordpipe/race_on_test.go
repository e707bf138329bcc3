//go:build race || lockorder

package recordpipe

const raceEnabled = true
