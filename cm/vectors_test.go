package cm

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// vectorSite returns the client and the server of the vectors.
func vectorSite(t *testing.T, m Mode, suite Suite) *site {
	at := time.Unix(0, 1700000000000000000)
	s := siteOf(t, func(client, server *Config) {
		client.Mode, client.Suite = m, suite
		client.Rand = fixedRandom{octets(0xa0, 16), bytesOf(0x11, 32)}
		server.Rand = fixedRandom{octets(0xb0, 16), bytesOf(0x22, 32)}
		client.Now = func() time.Time { return at }
		server.Now = func() time.Time { return at.Add(time.Millisecond) }
	})
	s.server.fresh.darkUntil, s.server.fresh.darkFor = 0, 0
	s.client.lastID.Store(0x100)
	s.server.lastID.Store(0x201)
	return s
}

func bytesOf(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

func use(m Mode, s Suite) keyUse { return keyUse{7, testClientID, s, m} }

func TestCM_9_11_VectorOfADerivedKey(t *testing.T) {
	psk := ClientKey(testMaster, 7, testClientID)
	require.Equal(t, unhex("0462c36988c7c1ad4ed91275ff112d721e51570972050c208f7963042d569ad5"), psk)
	require.Equal(t, unhex("ff68b79243b3ebe3100d6c5aee1481b9b6902aa456887e6959c629b3f40592ab"), extract([]byte("iwarp cm v1"), psk))
}

const (
	vectorRequestB = `4d504120494420526571204672616d65500200690010001053434d32010101010000000000000007636c69656e742d3030303030303030310000000000000000
    a0a1a2a3a4a5a6a7a8a9aaabacadaeaf000001010005000068656c6c6f580f1711d6575b4988367d30a0c86f5c778c333e60d88bcd201f0a8594ff15f6`
	vectorReplyB = `4d504120494420526570204672616d65500200610010001053434d32010101027365727665722d3030303030303030310000000000000000b0b1b2b3b4b5b6b7
    b8b9babbbcbdbebf0000020200050000776f726c6491195fc870c660fc106a3991700f5da023aba53be7df7a42bef53ae6052f4c98`
	vectorFirstB   = `53434d320101010398b024f0e857168221af5477d01e46234de9b827d3f5233f4d391927bd71a6c8`
	vectorRequestA = `4d504120494420526571204672616d65500200690010001053434d32010100010000000000000007636c69656e742d30303030303030303117979cfe362a0000
    a0a1a2a3a4a5a6a7a8a9aaabacadaeaf000001010005000068656c6c6fe576cf60d1571d1db1e21f2bd73c2989b9be1a6c6e87d95036ac68bb83b21c36`
	vectorReplyA = `4d504120494420526570204672616d65500200610010001053434d32010100027365727665722d30303030303030303117979cfe36394240b0b1b2b3b4b5b6b7
    b8b9babbbcbdbebf0000020200050000776f726c64845485d8fb75f4d1dc595cd2f566b96311868e80f5fa47022d6c6204a9d18fd1`
)

func TestCM_1_9_16_VectorsOfModeB(t *testing.T) {
	keys := deriveKeys(ClientKey(testMaster, 7, testClientID), &keyUse{7, testClientID, SuiteHMAC, ModeB})
	require.Equal(t, unhex("d6d901f19c68257a462ebe0834c53c0463a8f5a89598e0f345b3d08bd9e8def4"), keys.request.key)
	require.Equal(t, unhex("a82a87a0f3176c6819d1d011e355ffbd9f9dc9b5db410b917410cde3f9cc52ac"), keys.reply.key)
	require.Equal(t, unhex("a666b110b0d03ee64a3862592cac17275b943455ea50a8341209fed420f3cac8"), keys.refusal.key)

	s := vectorSite(t, ModeB, SuiteHMAC)
	i, r := s.initiate(), s.respond()
	request := s.request(i)
	require.Equal(t, unhex(vectorRequestB), request)
	_, err := r.Open(request, frameOff)
	require.NoError(t, err)
	reply := s.reply(r)
	require.Equal(t, unhex(vectorReplyB), reply)
	_, err = i.Open(reply, frameOff)
	require.NoError(t, err)

	transcript := sha256.Sum256(append(request, reply...))
	require.Equal(t, unhex("a8f0df756c6c287be33f6ce251a2e5c6aa055bc64f1bd1d922ed02c4d7b9eb3e"), transcript[:])
	secret := unhex("836d1ffee1437375bc8d05b943a8c80bcbb840575c3e92f40571a5ac40678413")
	require.Equal(t, secret, i.secret)
	require.Equal(t, secret, r.secret)
	require.Equal(t, unhex("dbcc6ee1856bde7d02076d69690df292e3b749b87c075949691415298c2e00d0"), expand(secret, "iwarp cm fin v1", 32))
	first, err := i.First()
	require.NoError(t, err)
	require.Equal(t, unhex(vectorFirstB), first)
	require.NoError(t, r.VerifyFirst(first))

	for _, side := range []interface {
		Export(string, []byte, int) ([]byte, error)
	}{i, r} {
		for _, c := range []struct{ label, context, want string }{
			{"iwarp rma binding v1", "", "9673522cbd39d105410c0033e2c7d3db1439aa16043d87dc959687dd48e805fb"},
			{"iwarp rma ctl v1", "\x01", "c3f3e1c0085215b9704bc0ae5217a16eceb6fd3e03e309adcea3cc92d76a9750"},
			{"iwarp rma ctl v1", "\x02", "ff6b2dbf1fd1cd3e54989e748f38db4647a6d3a60f404c474837b40d71d50732"},
		} {
			got, err := side.Export(c.label, []byte(c.context), 32)
			require.NoError(t, err)
			require.Equal(t, unhex(c.want), got, c)
		}
	}
}

func TestCM_1_9_VectorsOfModeA(t *testing.T) {
	keys := deriveKeys(ClientKey(testMaster, 7, testClientID), &keyUse{7, testClientID, SuiteHMAC, ModeA})
	require.Equal(t, unhex("5108202750c484afd5dc3d2e8829c1eea9915cd36b448350a9873d981f2d35b1"), keys.request.key)
	require.Equal(t, unhex("a130df3bc334357e3ef4cc1998f47909c9960adf6afcb1bf9fa836bd9dd6cdfc"), keys.reply.key)

	s := vectorSite(t, ModeA, SuiteHMAC)
	i, r := s.initiate(), s.respond()
	request := s.request(i)
	require.Equal(t, unhex(vectorRequestA), request)
	_, err := r.Open(request, frameOff)
	require.NoError(t, err)
	reply := s.reply(r)
	require.Equal(t, unhex(vectorReplyA), reply)
	_, err = i.Open(reply, frameOff)
	require.NoError(t, err)
	transcript := sha256.Sum256(append(request, reply...))
	require.Equal(t, unhex("f85c447cc939dded01e3a75e0d2488eed44766c63adc11a7d63a3b3749a2dec2"), transcript[:])
	require.Equal(t, unhex("4953b6c890a8d78fcacb49957975ee11115c147e2bb1a17b614017c49b4cefec"), i.secret)
	require.Equal(t, i.secret, r.secret)
}

func TestCM_1_9_17_VectorsOfSuite2(t *testing.T) {
	s := vectorSite(t, ModeB, SuiteX25519)
	i, r := s.initiate(), s.respond()
	require.Equal(t, unhex("7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13"), i.public())
	request := s.request(i)
	require.Equal(t, unhex("ffcba57a2a2b130bdf0ed0eb06e8df2f62bedae887468c7f918952a155b5b74b"), request[len(request)-32:])
	_, err := r.Open(request, frameOff)
	require.NoError(t, err)
	require.Equal(t, unhex("0faa684ed28867b97f4a6a2dee5df8ce974e76b7018e3f22a1c4cf2678570f20"), r.public())
	require.Equal(t, unhex("9e004098efc091d4ec2663b4e9f5cfd4d7064571690b4bea97ab146ab9f35056"), r.shared)
	reply := s.reply(r)
	require.Equal(t, unhex("e6251058bd8a0cd9a0636dae3a7e20050d06308896dcdf3121f5092b5351e201"), reply[len(reply)-32:])
	_, err = i.Open(reply, frameOff)
	require.NoError(t, err)
	transcript := sha256.Sum256(append(request, reply...))
	require.Equal(t, unhex("d02de8252a2eb37b21ff832a921892c0843824cda531545fb9ea679404b1bd61"), transcript[:])
	require.Equal(t, unhex("9fd63d7be792312c4a86f0d70783c23f9fd940dfcd00bdd132ccc058f480541e"), i.secret)
	first, err := i.First()
	require.NoError(t, err)
	require.Equal(t, unhex("53434d32010201036f41e9795fb12fd7b40eb63bbf9e0e05156da20ab96b996daddafeff6e77f7b2"), first)
	require.NoError(t, r.VerifyFirst(first))
}

func TestCM_9_12_VectorsOfIdentities(t *testing.T) {
	u := use(ModeB, SuiteHMAC)
	derived := newPeer(KindDerived, "lab", testClientID, &u)
	require.Equal(t, unhex("b67686522b419730cd5abeb592271353c75f1eca979a0b2215a61e9d66ac0fe9"), derived.ID[:])
	shared := newPeer(KindShared, "lab", testClientID, &u)
	require.Equal(t, unhex("cfbab99c4eb7e680d21a1ec9011222301c557d71e00377cfdb508324139adaab"), shared.ID[:])
}

func TestCM_1_15_35_VectorsOfRefusals(t *testing.T) {
	s := vectorSite(t, ModeB, SuiteHMAC)
	require.NoError(t, s.server.cfg.Ring.Replace(
		Key{ID: 7, Secret: testMaster, Derive: true, NotAfter: time.Unix(1700000000-3600, 0)},
		Key{ID: 8, Secret: testMaster, Derive: true, Primary: true},
	))
	r := s.respond()
	_, err := r.Open(unhex(vectorRequestB), frameOff)
	requireReason(t, ReasonKeyRetired, err)
	require.Equal(t, unhex(`4d504120494420526570204672616d65700200380010001053434d3201008004050000000000000000000008d74c4c264c8db551933261e43ff1a252dcb9b612
    85d980749bcf2271fcb4a00e`), s.refusal(r, nil, err))

	r = s.respond()
	_, err = r.Open(startOf("Req", 0x50, 0), frameOff)
	requireReason(t, ReasonNoBlock, err)
	require.Equal(t, unhex("53434d3201000004010000000000000000000000"), s.refusal(r, nil, err)[frameOff:])
}

// TestCM_9_EachInputChangesTheKeys changes one input of the derivation at a time.
func TestCM_9_EachInputChangesTheKeys(t *testing.T) {
	psk := octets(9, 32)
	seen := map[string]bool{}
	note := func(k []byte) {
		require.False(t, seen[string(k)])
		seen[string(k)] = true
	}
	base := use(ModeB, SuiteHMAC)
	for _, change := range []func(*keyUse){
		func(*keyUse) {},
		func(u *keyUse) { u.keyID++ },
		func(u *keyUse) { u.clientID[15]++ },
		func(u *keyUse) { u.suite = SuiteX25519 },
		func(u *keyUse) { u.mode = ModeA },
	} {
		u := base
		change(&u)
		k := deriveKeys(psk, &u)
		note(k.request.key)
		note(k.reply.key)
		note(k.refusal.key)
	}
	note(deriveKeys(octets(8, 32), &base).request.key)
	note(ClientKey(psk, 1, testClientID))
	note(ClientKey(psk, 2, testClientID))
	note(ClientKey(psk, 1, testServerID))
	note(ClientKey(octets(8, 32), 1, testClientID))
}

// TestCM_17_SecretNeedsX25519 derives S from what an attacker with the key has, and another Z.
func TestCM_17_SecretNeedsX25519(t *testing.T) {
	s := siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
	i, r := s.connect()
	require.Equal(t, i.secret, r.secret)
	transcript := octets(1, 32)
	psk := ClientKey(testMaster, 7, testClientID)
	a, b, c := sessionSecret(transcript, psk, nil), sessionSecret(transcript, psk, octets(1, 32)), sessionSecret(transcript, psk, octets(2, 32))
	require.NotEqual(t, a, b)
	require.NotEqual(t, b, c)
}

// lowOrder are points for which every X25519 shared secret is zero.
var lowOrder = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
	"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// lowOrderRequest returns the Request of a client of suite 2 that holds the key, and sends a point of low order.
func (s *site) lowOrderRequest(point []byte) []byte {
	s.t.Helper()
	q := request{suite: SuiteX25519, mode: ModeB, keyID: 7, clientID: testClientID, public: point, app: s.app}
	frame := q.append(startOf("Req", 0x50, 133))
	return append(frame, s.initiate().keys.request.sum(frame)...)
}

func TestCM_17_PointsOfLowOrderAreRefused(t *testing.T) {
	private, err := ecdh.X25519().NewPrivateKey(octets(3, 32))
	require.NoError(t, err)
	for _, p := range lowOrder {
		_, err := agree(private, unhex(p))
		requireReason(t, ReasonPublicKey, err)

		s := siteOf(t, func(client, _ *Config) { client.Suite = SuiteX25519 })
		s.refused(s.lowOrderRequest(unhex(p)), ReasonPublicKey)
	}
}
