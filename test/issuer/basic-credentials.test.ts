import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBasicCredentials } from '../../src/issuer/caller-verification.ts';

const field = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`;
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);
/** Text that UTF-8 can hold. */
const text = fc.string({ unit: 'grapheme' }).map((any) => any.toWellFormed());

describe('readBasicCredentials', () => {
  it('reads what needs no encoding in one way', () => {
    expect(readBasicCredentials(field('shop:s3cret'))).toEqual([{ clientId: 'shop', secret: 's3cret' }]);
  });

  it('splits at the first colon', () => {
    expect(readBasicCredentials(field('shop:a:b:'))).toEqual([{ clientId: 'shop', secret: 'a:b:' }]);
  });

  it('reads id and secret both raw or both form-decoded, never mixed', () => {
    expect(readBasicCredentials(field('a+b:c%20d'))).toEqual([
      { clientId: 'a+b', secret: 'c%20d' },
      { clientId: 'a b', secret: 'c d' },
    ]);
  });

  it('reads raw alone what is no valid form encoding', () => {
    expect(readBasicCredentials(field('a+b:100%'))).toEqual([{ clientId: 'a+b', secret: '100%' }]);
  });

  it('keeps a byte order mark: it may be part of a secret', () => {
    expect(readBasicCredentials(field('shop:\u{feff}x'))).toEqual([
      { clientId: 'shop', secret: '\u{feff}x' },
    ]);
  });

  it('has the raw pair among its readings, whatever the secret', () => {
    fc.assert(
      fc.property(text, text, (id, secret) => {
        fc.pre(!id.includes(':'));
        expect(readBasicCredentials(field(`${id}:${secret}`))).toContainEqual({ clientId: id, secret });
      }),
    );
  });

  it('has the form-encoded pair among its readings, whatever id and secret', () => {
    fc.assert(
      fc.property(text, text, (id, secret) => {
        const readings = readBasicCredentials(field(`${formEncoded(id)}:${formEncoded(secret)}`));
        expect(readings).toContainEqual({ clientId: id, secret });
      }),
    );
  });

  it('reads nothing into what is not canonical Base64', () => {
    // "a:b" is YTpi: most of these are near misses of something that could be read.
    const unit = fc.constantFrom('YTpi', 'Y', 'T', 'p', 'i', '=', '-', '_', '+', '/', ' ', '\n', '.');
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        fc.pre(Buffer.from(text, 'base64').toString('base64') !== text);
        fc.pre(!text.startsWith(' '));
        expect(readBasicCredentials(`Basic ${text}`)).toEqual([]);
      }),
    );
  });
});
