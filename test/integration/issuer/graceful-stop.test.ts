import { describe, expect, it } from 'vitest';
import { hashSecret, type ScryptDerivation } from '../../../src/issuer/secret-hashing.ts';
import { connectClient } from '../../wire/raw-client.ts';
import { askForToken, basic, runIssuer } from './running-issuer.ts';

/** A derivation that stands still until it is let go, to hold a request in flight. */
function heldDerivation(): { derive: ScryptDerivation; begun: Promise<void>; letGo(): void } {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  return {
    begun: begun.promise,
    letGo: gate.resolve,
    async derive(_secret, _salt, _cost, bytes) {
      begun.resolve();
      await gate.promise;
      return Buffer.alloc(bytes);
    },
  };
}

describe('stopping', () => {
  it('lets a request in flight finish, accepts no other, and tells the caller to close', async () => {
    const held = heldDerivation();
    const secretHash = await hashSecret('x', { ln: 1, r: 1, p: 1 });
    const issuer = await runIssuer([{ clientId: 'shop', secretHash }], { derive: held.derive });
    const inFlight = askForToken(issuer.tokenUrl, { authorization: basic('shop', 'x') });
    await held.begun;
    const closed = issuer.close();
    await expect(askForToken(issuer.tokenUrl)).rejects.toThrow();
    held.letGo();
    const { status, headers } = await inFlight;
    expect(status).toBe(401);
    expect(headers.get('connection')).toBe('close');
    await closed;
  });

  it('cuts what does not finish within the bound', async () => {
    const issuer = await runIssuer();
    const client = await connectClient(issuer.address);
    client.send('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n');
    // The answer to a second connection shows that the server has turned since.
    await askForToken(issuer.tokenUrl);
    await issuer.close(50);
    await client.closed();
  });

  it('closes idle connections at once', async () => {
    const issuer = await runIssuer();
    const client = await connectClient(issuer.address);
    client.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await client.response()).status).toBe(404);
    await issuer.close(60_000);
    expect(await client.closed()).toBe('end');
  });

  it('may be asked for twice', async () => {
    const issuer = await runIssuer();
    await Promise.all([issuer.close(), issuer.close()]);
  });
});
