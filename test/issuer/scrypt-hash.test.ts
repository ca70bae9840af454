import { scryptSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deriveScrypt, hashSecret, parseScryptHash } from '../../src/issuer/secret-hashing.ts';

const SALT = 'AAECAwQFBgcICQoLDA0ODw';
const HASH = 'a'.repeat(43).replace(/.$/, 'A');

describe('scrypt hashes', () => {
  it('match the secret they were made of, and no other', async () => {
    const hash = parseScryptHash(await hashSecret('s3cret:ü', { ln: 4, r: 2, p: 1 }));
    if (hash === undefined) throw new Error('its own hash does not parse');
    const derive = (secret: string) => deriveScrypt(secret, hash.salt, hash.cost, hash.hash.length);
    expect(await derive('s3cret:ü')).toEqual(hash.hash);
    expect(await derive('s3cret:u')).not.toEqual(hash.hash);
    expect(scryptSync('s3cret:ü', hash.salt, 32, { N: 16, r: 2, p: 1 })).toEqual(hash.hash);
  });

  it('are salted', async () => {
    const cost = { ln: 1, r: 1, p: 1 };
    expect(await hashSecret('x', cost)).not.toBe(await hashSecret('x', cost));
  });

  it('can be computed at the default cost', async () => {
    expect(await hashSecret('x')).toMatch(/^\$scrypt\$ln=14,r=8,p=5\$/);
  });

  it('parse as they are written elsewhere', () => {
    expect(parseScryptHash(`$scrypt$ln=16,r=8,p=1$${SALT}$${HASH}`)).toMatchObject({
      cost: { ln: 16, r: 8, p: 1 },
    });
  });

  it.each([
    ['nothing', ''],
    ['another scheme', `$argon2id$v=19$m=1,t=1,p=1$${SALT}$${HASH}`],
    ['no cost', `$scrypt$$${SALT}$${HASH}`],
    ['zero rounds', `$scrypt$ln=0,r=8,p=1$${SALT}$${HASH}`],
    ['zero blocks', `$scrypt$ln=14,r=0,p=1$${SALT}$${HASH}`],
    ['too much memory', `$scrypt$ln=25,r=8,p=1$${SALT}$${HASH}`],
    ['short salt', `$scrypt$ln=14,r=8,p=1$AAAA$${HASH}`],
    ['short hash', `$scrypt$ln=14,r=8,p=1$${SALT}$AAAA`],
    ['padding', `$scrypt$ln=14,r=8,p=1$${SALT}==$${HASH}`],
    ['a padded hash', `$scrypt$ln=14,r=8,p=1$${SALT}$${HASH}=`],
    ['a salt written in another way', `$scrypt$ln=14,r=8,p=1$${SALT.replace(/w$/, 'x')}$${HASH}`],
    ['a hash written in another way', `$scrypt$ln=14,r=8,p=1$${SALT}$${HASH.replace(/A$/, 'B')}`],
    ['a line end', `$scrypt$ln=14,r=8,p=1$${SALT}$${HASH}\n`],
  ])('do not parse with %s', (_name, text) => {
    expect(parseScryptHash(text)).toBeUndefined();
  });
});
