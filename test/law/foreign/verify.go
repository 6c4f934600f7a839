// Checks what this project's log says with code that none of its authors wrote: golang.org/x/mod/sumdb/note and tlog.
//
// Reads a JSON array of cases from its input and writes a JSON array: for each case "" if it is accepted, else why not.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type testCase struct {
	Kind string

	// note: the text, and the keys that are known.
	Note string
	Keys []string

	// inclusion, consistency, tiles: hashes come in base64.
	First     int64
	Size      int64
	FirstRoot []byte
	Root      []byte
	Index     int64
	Leaf      []byte
	Proof     [][]byte

	// tiles: the folder in which they are.
	Folder string
}

func main() {
	var cases []testCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answers := make([]string, len(cases))
	for i, c := range cases {
		if err := check(c); err != nil {
			answers[i] = err.Error()
		}
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}

func check(c testCase) error {
	switch c.Kind {
	case "note":
		return checkNote(c)
	case "inclusion":
		return tlog.CheckRecord(proof(c), c.Size, hash(c.Root), c.Index, tlog.RecordHash(c.Leaf))
	case "consistency":
		return tlog.CheckTree(tlog.TreeProof(proof(c)), c.Size, hash(c.Root), c.First, hash(c.FirstRoot))
	case "tiles":
		return checkTiles(c)
	}
	return fmt.Errorf("unknown kind %q", c.Kind)
}

func checkNote(c testCase) error {
	var known []note.Verifier
	for _, key := range c.Keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return err
		}
		known = append(known, verifier)
	}
	opened, err := note.Open([]byte(c.Note), note.VerifierList(known...))
	if err != nil {
		return err
	}
	tree := fmt.Sprintf("%d\n%s\n", c.Size, hash(c.Root))
	if lines := strings.SplitN(opened.Text, "\n", 2); lines[1] != tree {
		return fmt.Errorf("the note says %q, not %q", lines[1], tree)
	}
	return nil
}

// The reader of tlog authenticates every tile that it uses against the root; the proof made from them must be the given one.
func checkTiles(c testCase) error {
	reader := tlog.TileHashReader(tlog.Tree{N: c.Size, Hash: hash(c.Root)}, folder(c.Folder))
	made, err := tlog.ProveRecord(c.Size, c.Index, reader)
	if err != nil {
		return err
	}
	if fmt.Sprint(made) != fmt.Sprint(proof(c)) {
		return fmt.Errorf("the proof made from the tiles is another one")
	}
	if c.First < 1 {
		return nil
	}
	root, err := tlog.TreeHash(c.First, reader)
	if err == nil && root != hash(c.FirstRoot) {
		err = fmt.Errorf("the root of the first %d made from the tiles is another one", c.First)
	}
	return err
}

type folder string

func (f folder) Height() int                     { return 8 }
func (f folder) SaveTiles([]tlog.Tile, [][]byte) {}
func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var contents [][]byte
	for _, tile := range tiles {
		// Its paths name the height first; those of tlog-tiles leave it out, for it is always 8.
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		bytes, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		contents = append(contents, bytes)
	}
	return contents, nil
}

func proof(c testCase) tlog.RecordProof {
	hashes := tlog.RecordProof{}
	for _, bytes := range c.Proof {
		hashes = append(hashes, hash(bytes))
	}
	return hashes
}

func hash(bytes []byte) (h tlog.Hash) {
	copy(h[:], bytes)
	return h
}
