package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

type message struct {
	Heads    [][]string `json:"heads"`
	Data     string     `json:"data"`
	Trailers []string   `json:"trailers"`
	Ended    bool       `json:"ended"`
	// The sender reset it.
	reset bool
}

// over tells whether what comes for the stream is no part of the message any more.
func (message *message) over() bool {
	return message.Ended || message.reset
}

type transcript struct {
	Messages map[uint32]*message `json:"messages"`
	// Streams that have a fault of their own, and which.
	Refused map[uint32]string `json:"refused"`
	// Why the connection ended.
	Refusal *string `json:"refusal"`
}

// readConnection gives what the framer makes of frames. It knows nothing of the states of streams: what comes after the
// end of a message is left out, and a section after the head is of trailers unless it has a status.
func readConnection(frames []string) transcript {
	octets, err := hex.DecodeString(strings.Join(frames, ""))
	if err != nil {
		log.Fatal(err)
	}
	framer := http2.NewFramer(nil, bytes.NewReader(octets))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.MaxHeaderListSize = 65_536
	framer.SetMaxReadFrameSize(16_384)
	read := transcript{Messages: map[uint32]*message{}, Refused: map[uint32]string{}}
	for {
		frame, err := framer.ReadFrame()
		var faulty http2.StreamError
		switch {
		case errors.As(err, &faulty):
			read.Refused[faulty.StreamID] = why(err, framer)
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return read
		case err != nil:
			refusal := why(err, framer)
			read.Refusal = &refusal
			return read
		default:
			read.note(frame)
		}
	}
}

func why(err error, framer *http2.Framer) string {
	return fmt.Sprintf("%v: %v", err, framer.ErrorDetail())
}

func (read *transcript) note(frame http2.Frame) {
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		read.head(frame)
	case *http2.DataFrame:
		message := read.message(frame.StreamID)
		if message.over() {
			return
		}
		message.Data += text(string(frame.Data()))
		message.Ended = frame.StreamEnded()
	case *http2.RSTStreamFrame:
		read.message(frame.StreamID).reset = true
	}
}

func (read *transcript) head(frame *http2.MetaHeadersFrame) {
	message := read.message(frame.StreamID)
	if message.over() {
		return
	}
	fields := sectionOf(frame.Fields).Fields
	if len(message.Heads) > 0 && len(frame.PseudoFields()) == 0 {
		message.Trailers = fields
	} else {
		message.Heads = append(message.Heads, fields)
	}
	message.Ended = frame.StreamEnded()
}

func (read *transcript) message(id uint32) *message {
	if read.Messages[id] == nil {
		read.Messages[id] = &message{Heads: [][]string{}}
	}
	return read.Messages[id]
}
