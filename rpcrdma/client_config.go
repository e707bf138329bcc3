package rpcrdma

import (
	"cmp"
	"errors"

	"github.com/goiwarp/iwarp"
)

// A ClientConfig configures a Client. Zero fields have defaults.
type ClientConfig struct {
	// Credits is how many calls may be without a reply: 32 by default, 1024 at most. The server may grant less.
	Credits int
	// Inline is how many octets this side sends, and takes, in one message: 4096 by default, a multiple of 1024 up
	// to 65,536. The server may want less.
	Inline int
	// QP has further options of the QP: IRD, 16 by default, TLS, Auth, SetupTrace, RNRWait, StallWait, MPA, UserData and
	// Trace. The others must be zero. MPA.RTR cannot contain RTRSend, which is an empty message and no RPC.
	QP iwarp.QPConfig
}

const defaultIRD = 16

// withDefaults returns the configuration with all fields set.
func (c *ClientConfig) withDefaults() (d ClientConfig, err error) {
	if c != nil {
		d = *c
	}
	d.Credits = cmp.Or(d.Credits, defaultCredits)
	d.Inline = cmp.Or(d.Inline, defaultInline)
	d.QP.IRD = cmp.Or(d.QP.IRD, defaultIRD)
	if err := checkSizes("ClientConfig", d.Credits, d.Inline); err != nil {
		return d, err
	}
	if d.QP.IRD < 1 {
		return d, errors.New("rpcrdma: ClientConfig.QP.IRD is negative: calls with chunks need RDMA Reads")
	}
	return d, checkQP("ClientConfig", &d.QP, false)
}
