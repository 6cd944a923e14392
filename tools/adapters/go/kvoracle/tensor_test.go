package kvoracle

import (
	"encoding/json"
	"math"
	"testing"
)

func TestTensorsKeepEveryBit(t *testing.T) {
	for _, text := range []string{
		`{"shape":[2],"bits":[2143289345,1065353216]}`,
		`{"shape":[2,1],"dtype":"f16","bits":[15360,1]}`,
		`{"shape":[1],"dtype":"f8_e4m3","bits":[127]}`,
		`{"shape":[0],"bits":[]}`,
	} {
		var tensor Tensor
		if err := json.Unmarshal([]byte(text), &tensor); err != nil {
			t.Fatal(err)
		}
		written, _ := json.Marshal(tensor)
		if string(written) != text {
			t.Errorf("%s became %s", text, written)
		}
	}
}

func TestTensorsAreReadFromNumbers(t *testing.T) {
	var tensor Tensor
	if err := json.Unmarshal([]byte(`{"shape":[3],"data":[1,-0.0,"-inf"]}`), &tensor); err != nil {
		t.Fatal(err)
	}
	values := tensor.Floats()
	if values[0] != 1 || !math.Signbit(float64(values[1])) || !math.IsInf(float64(values[2]), -1) {
		t.Error(values)
	}
}

func TestNarrowTensorsAreRounded(t *testing.T) {
	for dtype, want := range map[string][]float32{
		"f16": {1.0009765625, 65504}, "bf16": {1, 65536}, "f8_e4m3": {1, 448}, "f8_e5m2": {1, 57344},
	} {
		var tensor Tensor
		if err := json.Unmarshal([]byte(`{"shape":[2],"dtype":"`+dtype+`","data":[1.0007,65500]}`), &tensor); err != nil {
			t.Fatal(err)
		}
		if values := tensor.Floats(); values[0] != want[0] || values[1] != want[1] {
			t.Errorf("%s: %v", dtype, values)
		}
	}
}

func TestNumbersThatJSONLacks(t *testing.T) {
	for _, text := range []string{`"inf"`, `"-inf"`, `"nan"`, `"nan:2143289345"`, `-0.0`, `1.5`} {
		var number Number
		if err := json.Unmarshal([]byte(text), &number); err != nil {
			t.Fatal(err)
		}
		if written, _ := json.Marshal(number); string(written) != text {
			t.Errorf("%s became %s", text, written)
		}
	}
}

func TestNamesOfMethods(t *testing.T) {
	if MethodName("with_capacity") != "WithCapacity" {
		t.Error(MethodName("with_capacity"))
	}
}

type counter struct{ count int }

func (c *counter) Add(arguments struct {
	By int `json:"by"`
}) (map[string]int, error) {
	if arguments.By < 0 {
		return nil, Refuse("out_of_range", "by: %d", arguments.By)
	}
	c.count += arguments.By
	return map[string]int{"count": c.count}, nil
}
func (c *counter) Reset()  { c.count = 0 }
func (c *counter) Broken() { panic("row 7") }

func TestAnswers(t *testing.T) {
	own := &server{cases: map[int64]any{}, kinds: []Kind{{Name: "test.kind",
		Open: func(json.RawMessage, string) (any, error) { return &counter{}, nil }}}}
	for _, step := range [][2]string{
		{`{"open":{"case":1,"kind":"test.kind","profile":"documented","config":{}}}`, `{}`},
		{`{"case":1,"op":"add","args":{"by":3}}`, `{"ret":{"count":3}}`},
		{`{"case":1,"op":"add","args":{"by":-3}}`, `{"ret":{"detail":"by: -3","error":"out_of_range"}}`},
		{`{"case":1,"batch":[{"op":"reset","args":{}},{"op":"add","args":{"by":1}}]}`,
			`{"batch":[{"ret":{}},{"ret":{"count":1}}]}`},
		{`{"case":1,"op":"broken","args":{}}`, `{"threw":"row 7"}`},
		{`{"case":1,"op":"lacking","args":{}}`, `{"unsupported":true}`},
		{`{"close":1}`, `{}`},
		{`{"case":1,"op":"add","args":{}}`, `{"fault":"no such case"}`},
	} {
		var asked request
		if err := json.Unmarshal([]byte(step[0]), &asked); err != nil {
			t.Fatal(err)
		}
		given := own.answer(&asked)
		delete(given, "ns")
		if all, batch := given["batch"].([]answer); batch {
			for _, one := range all {
				delete(one, "ns")
			}
		}
		if text, _ := json.Marshal(given); string(text) != step[1] {
			t.Errorf("%s gave %s", step[0], text)
		}
	}
}
