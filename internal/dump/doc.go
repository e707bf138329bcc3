// Package dump
package dump
