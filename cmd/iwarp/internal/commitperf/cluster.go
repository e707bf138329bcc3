package commitperf

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strconv"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cmd/iwarp/internal/peer"
	"github.com/goiwarp/iwarp/stag"
)

// A cluster is a target, in a process of its own, and connections to it: each has a slot of the
// target's medium and does one operation at a time. Each model has a cluster of its own.
type cluster struct {
	target *peer.Child
	cc     string
	rnic   *iwarp.RNIC
	pd     *iwarp.PD
	ends   []*end
}

// negotiated enables Commit if the other end does, too.
func negotiated() *iwarp.CommitOptions { return &iwarp.CommitOptions{Negotiate: true} }

func openCluster(ctx context.Context, o options, pulls bool, stderr io.Writer) (c *cluster, err error) {
	o.pulls = pulls
	c = &cluster{cc: o.cc}
	if c.rnic, err = iwarp.Open(nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.pd, err = c.rnic.AllocPD(); err != nil {
		return c, err
	}
	if c.target, err = peer.Start(ctx, stderr, o.target()...); err != nil {
		return c, err
	}
	for i := range o.slots {
		e, err := c.connect(ctx, i)
		if err != nil {
			return c, err
		}
		c.ends = append(c.ends, e)
	}
	return c, nil
}

// target returns the arguments with which a target is started.
func (o *options) target() []string {
	return []string{
		"perf", "commit", "--serve", "--dir", o.dir, "--medium", o.medium, "--slots", strconv.Itoa(o.slots),
		"--pulls=" + strconv.FormatBool(o.pulls), "--cc", o.cc,
	}
}

// syncs asks the target how many syncs it has made.
func (c *cluster) syncs(ctx context.Context) (uint64, error) {
	e := c.ends[0]
	var n [counterLen]byte
	sink, err := c.pd.RegisterMR(n[:], stag.LocalWrite, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sink.Close() }() // it is used only here
	if err := e.qp.RDMARead(ctx, sink.Slice(0, counterLen), e.at.syncs); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(n[:]), nil
}

// close ends the target, too.
func (c *cluster) close() error {
	err := c.rnic.Close()
	if c.target != nil {
		err = errors.Join(err, c.target.Stop())
	}
	return err
}
