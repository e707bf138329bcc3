package sctp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A deferredWake is a stream of a process that is stopped: it does nothing when it is woken.
type deferredWake struct{ *fakeStream }

func (deferredWake) Wake() {}

// TestClosedSessionOfAProcessThatWasStopped: the end of the peer's half, which has come meanwhile, is read, and the streams can be
// used again. They cannot if it has not.
func TestClosedSessionOfAProcessThatWasStopped(t *testing.T) {
	for _, ended := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, f := active(t)
			c.s = deferredWake{f}
			require.NoError(t, c.Close())
			synctest.Wait()
			time.Sleep(3 * drainTime)
			f.Wake() // the timer fires before anything is read
			synctest.Wait()
			if ended {
				f.says(17, "0001 0004")
			} else {
				time.Sleep(mostLate)
				f.Wake()
			}
			synctest.Wait()
			f.wantReleased(t, ended)
		})
	}
}
