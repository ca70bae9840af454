import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FormFault, parseForm } from '../../src/platform/form.ts';

describe('parseForm', () => {
  it('reads what a form serializer writes', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1 }).map((any) => any.toWellFormed());
    fc.assert(
      fc.property(fc.dictionary(name, name), (parameters) => {
        const form = parseForm(Buffer.from(new URLSearchParams(parameters).toString()));
        expect(form).toEqual(new Map(Object.entries(parameters)));
      }),
    );
  });

  it.each(['a=1&a=2', 'a=1&a=1', 'a&a', 'a=1&%61=2', '=1&=2'])('refuses the repetition in %s', (text) => {
    expect(parseForm(Buffer.from(text))).toBeInstanceOf(FormFault);
  });

  it.each(['%', 'a=%', 'a=%2', 'a=%zz', '%ff=a', 'a=%c0%80', 'a=%ed%a0%80'])('refuses %s', (text) => {
    expect(parseForm(Buffer.from(text))).toBeInstanceOf(FormFault);
  });

  it('passes over empty pairs and parameters without a value', () => {
    expect(parseForm(Buffer.from('&a=1&&b=&c&'))).toEqual(new Map([['a', '1']]));
  });

  it('never throws, and never repeats what it was sent', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const form = parseForm(bytes);
        if (form instanceof FormFault) expect(form.description).not.toBe('');
      }),
    );
  });
});
