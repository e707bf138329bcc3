package iwarp

import (
	"math"
	"time"
)

// RNRWaitForever is a [QPConfig].RNRWait without an end: a message waits until a receive
// is posted for it, or the QP ends. A sender of ibverbs gets the same by rnr_retry = 7.
const RNRWaitForever time.Duration = math.MaxInt64

const defaultRNRWait = 30 * time.Second
