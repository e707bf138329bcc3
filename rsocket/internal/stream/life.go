package stream

import "github.com/goiwarp/iwarp/rsocket/internal/wire"

// saying is how far this side has come with what it sends.
type saying uint8

const (
	sayOpen     saying = iota
	sayDraining        // SHUTDOWN, or DISCONNECT, is to be sent behind what is queued
	sayShut            // SHUTDOWN was sent
	sayEnding          // DISCONNECT is to be sent behind what is queued
	sayGone            // DISCONNECT was sent, or need not be
)

// hearing is how far the peer has come with what it sends.
type hearing uint8

const (
	hearOpen hearing = iota
	hearShut         // SHUTDOWN has come
	hearGone         // DISCONNECT has come
)

// A life is the end of a stream, which comes by messages: the end of the connection says less.
type life struct {
	said  saying
	heard hearing
}

// over reports whether messages of the peer mean nothing any more.
func (l *life) over() bool { return l.said == sayGone }

// shutdown is asked for by the program.
func (l *life) shutdown() {
	if l.said == sayOpen {
		l.said = sayDraining
	}
}

// disconnect is asked for by the program.
func (l *life) disconnect() {
	if l.said < sayEnding {
		l.said = sayEnding
	}
}

// shut is what the peer says.
func (l *life) shut() {
	l.heard = max(l.heard, hearShut)
	if l.said == sayShut {
		l.said = sayGone // both have said the same, and neither says more
	}
}

// disconnected is what the peer says.
func (l *life) disconnected() { l.said, l.heard = sayGone, hearGone }

// last returns the message that is due when everything queued was posted, if any, and goes on to
// what follows it. Where both sides stop, the second says DISCONNECT.
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
