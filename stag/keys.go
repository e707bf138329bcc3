package stag

// keys are the keys of one index, from the least recently used key to the key in use. A
// new key is drawn from the older half: it is hard to predict, and an STag that a peer may
// still remember stays invalid for at least the next 128 enables.
type keys struct{ order [256]uint8 }

// start puts the key in use last, and the others before it.
func (k *keys) start(inUse uint8) {
	for i := range k.order {
		k.order[i] = inUse + 1 + uint8(i)
	}
}

func (k *keys) draw(random uint8) uint8 { return k.use(int(random) % (len(k.order) / 2)) }

// choose makes key, which the caller has chosen, the key in use.
func (k *keys) choose(key uint8) {
	for i := range k.order {
		if k.order[i] == key {
			k.use(i)
			return
		}
	}
}

func (k *keys) use(i int) uint8 {
	key := k.order[i]
	copy(k.order[i:], k.order[i+1:])
	k.order[len(k.order)-1] = key
	return key
}
