package target

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
	"github.com/goiwarp/iwarp/examples/nvme/capsule"
	nvme "github.com/goiwarp/iwarp/examples/nvme/host"
	"github.com/goiwarp/iwarp/internal/selfsigned"
)

// refuses checks that a host does not get in, and that the target has made nothing for it.
func (w *world) refuses(o nvme.Options, want error) {
	w.t.Helper()
	o.Network, o.HostNQN, o.HostID = network(w.addr), hostNQN, hostID
	_, err := nvme.Connect(context.Background(), w.addr, storage, &o)
	require.Error(w.t, err)
	if want != nil {
		require.ErrorIs(w.t, err, want)
	}
	require.Zero(w.t, w.target.Stats().Connections)
}

// TestTLS: with Config.TLS and host certificates, a name is not enough.
func TestTLS(t *testing.T) {
	server, trustsServer := selfsigned.New("storage.example")
	client, trustsClient := selfsigned.New("host.example")
	other, _ := selfsigned.New("host.example")
	w := newWorld(t, "tcp", &Config{TLS: &tls.Config{
		Certificates: []tls.Certificate{server}, ClientCAs: trustsClient, ClientAuth: tls.RequireAndVerifyClientCert,
	}}, nil)
	with := func(c ...tls.Certificate) nvme.Options {
		return nvme.Options{QPConfig: iwarp.QPConfig{TLS: &tls.Config{RootCAs: trustsServer, ServerName: "storage.example", Certificates: c}}}
	}
	w.refuses(nvme.Options{}, nil)
	w.refuses(with(), nil)
	w.refuses(with(other), nil)
	_, n := w.attach(with(client))
	exercise(t, n)
}

// keyed makes an Authenticator that holds a key.
func keyed(t *testing.T, name byte, secret string) *cm.Auth {
	ring, err := cm.NewRing(cm.Key{ID: 1, Secret: []byte(secret), Primary: true})
	require.NoError(t, err)
	a, err := cm.New(&cm.Config{Ring: ring, ID: [16]byte{name}})
	require.NoError(t, err)
	return a
}

// TestAuth: with Config.Auth only hosts that hold a key get in.
func TestAuth(t *testing.T) {
	virtual(t, func(t *testing.T) {
		const secret = "thirty-two octets, random ones !"
		w := newWorld(t, "pipe", &Config{Auth: keyed(t, 's', secret)}, nil)
		w.refuses(nvme.Options{}, nil)
		w.refuses(nvme.Options{QPConfig: iwarp.QPConfig{Auth: keyed(t, 'h', "thirty-two octets, but others ! ")}}, iwarp.ErrAuth)
		_, n := w.attach(nvme.Options{Queues: 2, QPConfig: iwarp.QPConfig{Auth: keyed(t, 'h', secret)}})
		exercise(t, n)
	})
}

// A slowAuth takes until the end of SetupTimeout to check a host's first message.
type slowAuth struct{ iwarp.Authenticator }

type slowSession struct{ iwarp.AuthSession }

func (a slowAuth) Respond(ctx context.Context, i *iwarp.AuthInfo) (iwarp.AuthSession, error) {
	s, err := a.Authenticator.Respond(ctx, i)
	return slowSession{s}, err
}

func (s slowSession) VerifyFirst(msg []byte) error {
	time.Sleep(6 * time.Second)
	return s.AuthSession.VerifyFirst(msg)
}

// TestNVME_11_ReceivesOfFailedAccepts: messages that follow the first message of a host that was too late have taken
// receives of the SRQ. The receives are posted again, and the messages are not carried out.
func TestNVME_11_ReceivesOfFailedAccepts(t *testing.T) {
	virtual(t, func(t *testing.T) {
		const secret = "thirty-two octets, random ones !"
		w := newWorld(t, "pipe", &Config{Auth: &slowAuth{keyed(t, 's', secret)}, SRQ: 8, Authorize: func(*Login) error {
			t.Error("the host wants to connect a queue")
			return nil
		}}, nil)
		connect := capsule.Connect{SQSize: 7}.SQE(0, capsule.InCapsuleSGL(0, capsule.ConnectDataSize))
		msg := append(connect.Append(nil), make([]byte, capsule.ConnectDataSize)...)
		d := capsule.ConnectData{HostID: hostID, CNTLID: capsule.AnyController, SubNQN: storage, HostNQN: hostNQN}
		d.Put(msg[capsule.SQESize:])
		h := newHost(t, w.addr)
		mr, err := h.pd.RegisterMR(msg, 0, nil)
		require.NoError(t, err)
		l, err := h.dial(0, 8, func(qc *iwarp.QPConfig) {
			qc.Auth, qc.SendDepth = keyed(t, 'h', secret), 8
			qc.Setup = func(_ context.Context, qp *iwarp.QP) error { // what is posted here follows the first message at once
				send := iwarp.SendWR{Op: iwarp.OpSend, Flags: iwarp.Unsignaled, Local: []iwarp.SGE{mr.Slice(0, len(msg))}}
				return qp.PostSend(send, send)
			}
		})
		require.NoError(t, err)
		<-l.qp.Done()
		st := w.settled()
		require.Zero(t, st.Connections)
		require.EqualValues(t, 2, st.Commands, "they have come")
		require.Equal(t, 8, w.remains(t).free)
	})
}

// TestNVME_93_Authorize: the program decides which authenticated peer may use which NQN, on each queue and for
// discovery.
func TestNVME_93_Authorize(t *testing.T) {
	virtual(t, func(t *testing.T) {
		const secret, other = "thirty-two octets, random ones !", "nqn.2026-11.org.example:other"
		var seen []Login
		w := newWorld(t, "pipe", &Config{Auth: keyed(t, 's', secret), Authorize: func(l *Login) error {
			seen = append(seen, *l)
			if !l.Authenticated || l.Peer.Name[0] != 'h' || l.HostNQN != hostNQN {
				return errors.New("not its name")
			}
			return nil
		}}, nil)
		options := func(peer byte, nqn string) nvme.Options {
			return nvme.Options{Network: "pipe", HostNQN: nqn, HostID: hostID, QPConfig: iwarp.QPConfig{Auth: keyed(t, peer, secret)}}
		}
		refused := func(err error) {
			var refusal *capsule.ConnectError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, capsule.StatusConnectHost, refusal.Status)
		}
		for _, o := range []nvme.Options{options('x', hostNQN), options('h', other)} {
			_, err := nvme.Connect(context.Background(), w.addr, storage, &o)
			refused(err)
			_, err = nvme.Discover(context.Background(), w.addr, &o)
			refused(err)
		}
		o := options('h', hostNQN)
		_, err := nvme.Discover(context.Background(), w.addr, &o)
		require.NoError(t, err)
		seen = nil
		_, n := w.attach(nvme.Options{Queues: 2, QPConfig: o.QPConfig})
		exercise(t, n)
		require.Len(t, seen, 3, "the admin queue and two I/O queues")
		require.Equal(t, hostID, seen[0].HostID)
		require.Equal(t, storage, seen[0].SubNQN)
	})
}

// TestNVME_87_AdvertisedAddress: the discovery log contains the configured address, or the address to which the host has
// connected.
func TestNVME_87_AdvertisedAddress(t *testing.T) {
	for _, c := range []struct {
		advertised string
		want       [2]string
		family     uint8
	}{
		{"192.0.2.1:4420", [2]string{"192.0.2.1", "4420"}, capsule.AddressIPv4},
		{"[2001:db8::1%eth0]:99", [2]string{"2001:db8::1", "99"}, capsule.AddressIPv6},
		{"[::ffff:192.0.2.2]:1", [2]string{"192.0.2.2", "1"}, capsule.AddressIPv4},
		{"", [2]string{}, capsule.AddressIPv4},
	} {
		cfg := new(Config)
		if c.advertised != "" {
			cfg.Advertised = netip.MustParseAddrPort(c.advertised)
		}
		w := newWorld(t, "tcp", cfg, nil)
		if c.advertised == "" {
			at := netip.MustParseAddrPort(w.addr)
			c.want = [2]string{at.Addr().String(), w.addr[len(at.Addr().String())+1:]}
		}
		list, err := nvme.Discover(context.Background(), w.addr, nil)
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, e := range list {
			require.Equal(t, c.want, [2]string{e.TRADDR, e.TRSVCID})
			require.Equal(t, c.family, e.ADRFAM)
		}
	}
}

// TestNVME_93_Hosts: a subsystem with a list of hosts refuses others, and is hidden from them. A host taken off the list
// loses its queues, and the others do not notice.
func TestNVME_93_Hosts(t *testing.T) {
	virtual(t, func(t *testing.T) {
		w := newWorld(t, "pipe", nil, nil)
		const second = "nqn.2026-11.org.example:second"
		require.ErrorIs(t, w.target.SetHosts(second, nil), ErrNotFound)
		require.NoError(t, w.target.AddSubsystem(Subsystem{NQN: second, Hosts: []string{hostNQN}}))
		names := func(nqn string) (list []string) {
			entries, err := nvme.Discover(context.Background(), w.addr, &nvme.Options{Network: "pipe", HostNQN: nqn, HostID: hostID})
			require.NoError(t, err)
			for _, e := range entries {
				list = append(list, e.SubNQN)
			}
			return list
		}
		require.Contains(t, names(hostNQN), second)
		require.Equal(t, []string{capsule.DiscoveryNQN, storage}, names("nqn.2026-11.org.example:third"))

		a, b := newHost(t, w.addr), newHost(t, w.addr)
		b.nqn += "2"
		stays, goes := a.connect(1), b.connect(1)
		require.NoError(t, w.target.SetHosts(storage, []string{hostNQN}))
		<-goes.admin.qp.Done()
		<-goes.io[0].qp.Done()
		require.Equal(t, 2, w.settled().Queues)
		require.Equal(t, capsule.Success, stays.io[0].write(1, pattern(lba, 1)).Status)
		l, err := b.dial(0, 32, nil)
		require.NoError(t, err)
		require.Equal(t, capsule.StatusConnectHost, l.connect(storage, capsule.AnyController).Status)
		require.NoError(t, w.target.SetHosts(storage, nil))
		b.connect(1)
		require.EqualValues(t, 1, w.target.Stats().Refused)
	})
}
