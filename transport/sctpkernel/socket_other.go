//go:build !linux || 386

package sctpkernel

// A socket is supported only on Linux.
type socket struct{}

func dial(Config, Addr, Addr) (*socket, error) { return nil, ErrNoSCTP }
func listen(Config, Addr) (*socket, error)     { return nil, ErrNoSCTP }

func (*socket) receive(bool) (*message, error)          { return nil, ErrNoSCTP }
func (*socket) send(uint16, uint32, bool, []byte) error { return ErrNoSCTP }
func (*socket) writable() (bool, error)                 { return false, ErrNoSCTP }
func (*socket) queued() (int, error)                    { return 0, ErrNoSCTP }
func (*socket) unfragmented() (int, error)              { return 0, ErrNoSCTP }
func (*socket) addrs(int) (Addr, error)                 { return Addr{}, ErrNoSCTP }
func (*socket) accept() (*socket, error)                { return nil, ErrNoSCTP }
func (*socket) shutdown()                               {}
func (*socket) abort()                                  {}
func (*socket) close()                                  {}
