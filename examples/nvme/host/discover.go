package host

import (
	"context"
	"errors"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
)

// An Entry is where a subsystem can be reached.
type Entry = capsule.DiscoveryEntry

// discoveryTries is how often the log is read again if it has changed meanwhile.
const discoveryTries = 10

// Discover lists what the discovery subsystem at addr reports to this host: NVM subsystems, the discovery
// subsystem itself, and referrals to others, which are not followed. addr is as in Connect. The options
// for I/O and for connecting again are ignored.
func Discover(ctx context.Context, addr string, o *Options) (_ []Entry, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.KATO = 0
	rnic := o.RNIC
	if rnic == nil {
		if rnic, err = iwarp.Open(nil); err != nil {
			return nil, err
		}
		defer func() { _ = rnic.Close() }()
	}
	a, err := newAssoc(ctx, rnic, addr, capsule.DiscoveryNQN, o)
	if err != nil {
		return nil, err
	}
	entries, err := a.discoveryLog(ctx)
	if err == nil {
		err = a.shutdown(ctx)
	}
	a.fail(ErrClosed)
	a.close(err == nil)
	return entries, err
}

// discoveryLog reads the whole log. Its first part contains its length and a generation: if the generation
// has changed when everything was read, the log is read again.
func (a *assoc) discoveryLog(ctx context.Context) ([]Entry, error) {
	header := make([]byte, capsule.DiscoveryHeaderSize)
	for range discoveryTries {
		if err := a.readDiscovery(ctx, header, 0, true); err != nil {
			return nil, err
		}
		before, err := capsule.ParseDiscoveryHeader(header)
		if err != nil {
			return nil, err
		}
		log := make([]byte, before.Length())
		several, err := a.readPages(ctx, log)
		if err != nil {
			return nil, err
		}
		if several {
			if err := a.readDiscovery(ctx, header, 0, false); err != nil {
				return nil, err
			}
		} else {
			copy(header, log)
		}
		after, err := capsule.ParseDiscoveryHeader(header)
		if err != nil {
			return nil, err
		}
		if after == before {
			_, entries, err := capsule.ParseDiscoveryLog(log)
			return entries, err
		}
	}
	return nil, errors.New("nvme: the discovery log changes all the time")
}

// readPages reads a log, and reports whether that took several commands.
func (a *assoc) readPages(ctx context.Context, log []byte) (several bool, err error) {
	page := min(adminTransfer, a.transfer) &^ (capsule.DiscoveryEntrySize - 1)
	for off := 0; off < len(log); off += page {
		if err := a.readDiscovery(ctx, log[off:min(off+page, len(log))], off, false); err != nil {
			return false, err
		}
	}
	return len(log) > page, nil
}

func (a *assoc) readDiscovery(ctx context.Context, p []byte, off int, rae bool) error {
	_, err := a.command(ctx, capsule.NewGetLogPage(capsule.LogDiscovery, uint64(off), uint32(len(p)), rae).SQE(0, capsule.SGL{}), p)
	return err
}
