package main

import (
	"bytes"
	"encoding/hex"
	"log"

	"golang.org/x/net/http2/hpack"
)

// A block of a sequence, and what comes before it.
type step struct {
	// A SETTINGS_HEADER_TABLE_SIZE that the decoder's side has had acknowledged.
	Limit *uint32
	// Sizes that the encoder gives its table, in order.
	Sizes []uint32
	// To be encoded: name, value, …; and of each field whether it is never to be indexed.
	Fields []string
	Never  []bool
	// To be decoded.
	Block string
}

type section struct {
	Fields []string `json:"fields"`
	// Names of fields that came never indexed.
	Never []string `json:"never"`
}

func encode(steps []step) []string {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	blocks := []string{}
	for _, step := range steps {
		if step.Limit != nil {
			encoder.SetMaxDynamicTableSizeLimit(*step.Limit)
		}
		for _, size := range step.Sizes {
			encoder.SetMaxDynamicTableSize(size)
		}
		block.Reset()
		for index, never := range step.Never {
			field := hpack.HeaderField{
				Name:      octets(step.Fields[index*2]),
				Value:     octets(step.Fields[index*2+1]),
				Sensitive: never,
			}
			if err := encoder.WriteField(field); err != nil {
				log.Fatal(err)
			}
		}
		blocks = append(blocks, hex.EncodeToString(block.Bytes()))
	}
	return blocks
}

// decode gives the sections, or why the last was refused in its place.
func decode(steps []step) []any {
	decoder := hpack.NewDecoder(4096, nil)
	sections := []any{}
	for _, step := range steps {
		if step.Limit != nil {
			decoder.SetAllowedMaxDynamicTableSize(*step.Limit)
		}
		block, err := hex.DecodeString(step.Block)
		if err != nil {
			log.Fatal(err)
		}
		fields, err := decoder.DecodeFull(block)
		if err != nil {
			return append(sections, err.Error())
		}
		sections = append(sections, sectionOf(fields))
	}
	return sections
}

func sectionOf(fields []hpack.HeaderField) section {
	found := section{Fields: []string{}, Never: []string{}}
	for _, field := range fields {
		found.Fields = append(found.Fields, text(field.Name), text(field.Value))
		if field.Sensitive {
			found.Never = append(found.Never, text(field.Name))
		}
	}
	return found
}
