// Go's readers and writers of HTTP/2 (golang.org/x/net/http2), asked by the fuzzers. A question a line in, an answer a
// line out; text holds an octet in each char.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"strings"
)

type question struct {
	Encode []step
	Decode []step
	Frames []string
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(answer(asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func answer(asked question) any {
	switch {
	case asked.Encode != nil:
		return encode(asked.Encode)
	case asked.Decode != nil:
		return decode(asked.Decode)
	default:
		return readConnection(asked.Frames)
	}
}

// octets gives an octet for each char.
func octets(text string) string {
	var out strings.Builder
	for _, char := range text {
		out.WriteByte(byte(char))
	}
	return out.String()
}

// text gives a char for each octet.
func text(octets string) string {
	var out strings.Builder
	for index := range len(octets) {
		out.WriteRune(rune(octets[index]))
	}
	return out.String()
}
