package qpconn

// A Token wakes a [Waiter]. It keeps one call of Tell until the Waiter takes it.
type Token chan struct{}

// NewToken returns a Token on which Tell has not been called.
func NewToken() Token { return make(Token, 1) }

// Tell wakes the Waiter. It never blocks.
func (t Token) Tell() {
	select {
	case t <- struct{}{}:
	default:
	}
}
