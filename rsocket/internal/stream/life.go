package stream

import "github.com/goiwarp/iwarp/rsocket/internal/wire"

// saying is the state of the direction to the peer.
type saying uint8

const (
	sayOpen     saying = iota
	sayDraining        // SHUTDOWN, or DISCONNECT, is to be sent behind what is queued
	sayShut            // SHUTDOWN was sent
	sayEnding          // DISCONNECT is to be sent behind what is queued
	sayGone            // DISCONNECT was sent, or need not be
)

// hearing is the state of the direction from the peer.
type hearing uint8

const (
	hearOpen hearing = iota
	hearShut         // SHUTDOWN has come
	hearGone         // DISCONNECT has come
)

// A life tracks the end of a stream, which messages announce: the end of the connection says less.
type life struct {
	said  saying
	heard hearing
}

// over reports whether messages of the peer no longer have a meaning.
func (l *life) over() bool { return l.said == sayGone }

// shutdown is called for the program.
func (l *life) shutdown() {
	if l.said == sayOpen {
		l.said = sayDraining
	}
}

// disconnect is called for the program.
func (l *life) disconnect() {
	if l.said < sayEnding {
		l.said = sayEnding
	}
}

// shut takes SHUTDOWN of the peer.
func (l *life) shut() {
	l.heard = max(l.heard, hearShut)
	if l.said == sayShut {
		l.said = sayGone // both have said the same, and neither says more
	}
}

// disconnected takes DISCONNECT of the peer.
func (l *life) disconnected() { l.said, l.heard = sayGone, hearGone }

// last returns the message that is due, if any, after everything queued was posted, and enters the
// state that follows. If both sides stop, the second one sends DISCONNECT.
func (l *life) last() (wire.Message, bool) {
	switch {
	case l.said == sayDraining && l.heard == hearOpen:
		l.said = sayShut
		return wire.NewMessage(wire.OpCtrl, wire.CtrlShutdown), true
	case l.said == sayDraining || l.said == sayEnding:
		l.said = sayGone
		return wire.NewMessage(wire.OpCtrl, wire.CtrlDisconnect), true
	}
	return 0, false
}
