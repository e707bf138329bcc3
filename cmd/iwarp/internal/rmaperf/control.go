package rmaperf

// What an order asks for.
const (
	doOpen    = "open"    // a service
	doClose   = "close"   // a service
	doHold    = "hold"    // accesses to region heldRegion wait from now on
	doHeld    = "held"    // answered when one waits
	doRelease = "release" // they go on
	doCores   = "cores"   // on how many processors the server runs; 0: as many as it may
)

// An order is what the client asks the server for.
type order struct {
	Do      string   `json:"do"`
	Open    *service `json:"open,omitempty"`
	Service int      `json:"service,omitempty"` // number
	Cores   int      `json:"cores,omitempty"`
}

// A reply is the result of an order.
type reply struct {
	Service int    `json:"service,omitempty"`
	Addr    string `json:"addr,omitempty"`
}
