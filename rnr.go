package iwarp

import (
	"math"
	"time"
)

// RNRWaitForever, as [QPConfig].RNRWait, means no time limit: a message waits until a receive
// is posted for it, or until the QP ends. A sender with ibverbs gets the same by rnr_retry =
// 7.
const RNRWaitForever time.Duration = math.MaxInt64

const defaultRNRWait = 30 * time.Second
