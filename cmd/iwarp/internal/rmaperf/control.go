package rmaperf

// What an order requests.
const (
	doOpen    = "open"    // a service
	doClose   = "close"   // a service
	doHold    = "hold"    // accesses to region heldRegion wait from now on
	doHeld    = "held"    // answered when an access waits
	doRelease = "release" // accesses go on
	doCores   = "cores"   // the number of processors on which the server runs; 0: as many as it may
)

// An order is a request of the client to the server.
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
