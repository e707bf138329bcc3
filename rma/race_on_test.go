//go:build race

package rma

// damageStrides is how many octets further each damage is than the one before.
const damageStrides = 11
