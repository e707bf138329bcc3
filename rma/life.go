package rma

// A stage is how far the life of a connection has come. It never goes back.
type stage uint8

const (
	serving stage = iota
	closing       // no more operations are started
	failing       // this side has found an error, and ends the QP
	broken        // the QP is ending
	gone          // the QP has ended, and the state machines were told
)

// reach advances to a stage. It reports false if the connection had reached it already. mu is held.
func (c *conn) reach(s stage) bool {
	if c.stage >= s {
		return false
	}
	c.stage = s
	return true
}
