import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { deriveScrypt, hashSecret } from '../../../src/issuer/secret-hashing.ts';
import type { TokenListenerLimits } from '../../../src/issuer/token-listener.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { connectClient, type RawClient } from '../../wire/raw-client.ts';
import { basic, FORM, type RunningIssuer, runIssuer, SHOP } from './running-issuer.ts';

const LIMITS: Partial<TokenListenerLimits> = { connections: 3, pipelined: 4, answerTimeoutMs: 300 };
const BODY = 'grant_type=client_credentials';

let issuer: RunningIssuer;
let request: string;
beforeEach(async () => {
  issuer = await runIssuer([SHOP], { limits: LIMITS });
  request =
    `POST ${new URL(issuer.tokenUrl).pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM}\r\n` +
    `Authorization: ${basic('shop', 's3cret')}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
});
afterEach(async () => await issuer.close(0));

const connect = (): Promise<RawClient> => connectClient(issuer.address);

describe('a client that half-closes', () => {
  it('gets its answer, and then the end', async () => {
    const client = await connect();
    client.socket.end(Buffer.from(request));
    expect((await client.response()).status).toBe(200);
    expect(await client.closed()).toBe('end');
  });

  it('gets the answers to all that it has sent', async () => {
    const client = await connect();
    client.socket.end(Buffer.from(request + request));
    expect((await client.response()).status).toBe(200);
    expect((await client.response()).status).toBe(200);
    expect(await client.closed()).toBe('end');
  });

  it('in the middle of a request is told that it is not whole', async () => {
    const client = await connect();
    client.socket.end(Buffer.from(request.slice(0, -5)));
    expect((await client.response()).status).toBe(400);
    expect(await client.closed()).toBe('end');
  });

  it('without a request is closed', async () => {
    const client = await connect();
    client.end();
    expect(await client.closed()).toBe('end');
  });
});

describe('connections beyond the bound', () => {
  it('take the place of the one that has gone longest without an answer', async () => {
    const [first, second, third] = [await connect(), await connect(), await connect()];
    expect((await first.send(request).response()).status).toBe(200);
    const newcomer = await connect();
    await second.closed();
    for (const client of [first, third, newcomer]) {
      expect((await client.send(request).response()).status).toBe(200);
    }
  });

  it('push out the slow ones that came before them, and are served', async () => {
    const slow = [];
    for (let index = 0; index < 20; index++) slow.push((await connect()).send(request.slice(0, -5)));
    const client = await connect();
    expect((await client.send(request).response()).status).toBe(200);
    await Promise.all(slow.slice(0, 18).map((each) => each.closed()));
  });
});

describe('an address whose connections are all being answered', () => {
  /** Wrong secrets are held for a second; these as long as the test lasts. */
  async function fill(connections: number) {
    const allHeld = Promise.withResolvers<void>();
    let timers = 0;
    let over = false;
    const clock: Clock = {
      ...systemClock,
      after(...timer) {
        if (over) return systemClock.after(...timer);
        if (++timers === connections) allHeld.resolve();
        return () => undefined;
      },
    };
    const secretHash = await hashSecret('s3cret', { ln: 1, r: 1, p: 1 });
    const service = await runIssuer([SHOP, { clientId: 'bank', secretHash }], { limits: LIMITS, clock });
    onTestFinished(() => {
      over = true;
      return service.close(0);
    });
    const connectFrom = (address: string) => connectClient(service.address, address);
    const held: RawClient[] = [];
    for (let index = 0; index < connections; index++) {
      const client = await connectFrom('127.0.0.2');
      held.push(client.send(request.replace(basic('shop', 's3cret'), basic('shop', `wrong${index}`))));
    }
    await allHeld.promise;
    return { held, connectFrom };
  }

  it('gives one up for a newcomer from elsewhere', async () => {
    const { held, connectFrom } = await fill(3);
    const newcomer = (await connectFrom('127.0.0.3')).send(request);
    expect((await newcomer.response()).status).toBe(200);
    await held[0]?.closed();
  });

  it('gives none up for a newcomer of its own', async () => {
    const { connectFrom } = await fill(3);
    expect(await (await connectFrom('127.0.0.2')).closed()).toBeDefined();
  });

  it('keeps its place where it has no more of them than others, which may be idle', async () => {
    const { connectFrom } = await fill(1);
    const [idle, served] = [await connectFrom('127.0.0.3'), await connectFrom('127.0.0.4')];
    expect((await served.send(request).response()).status).toBe(200);
    const newcomer = (await connectFrom('127.0.0.5')).send(request);
    expect((await newcomer.response()).status).toBe(200);
    await idle.closed();
  });
});

describe('a client that sends ahead', () => {
  it('is answered up to a bound', async () => {
    const client = await connect();
    client.send(request.repeat(4));
    for (let index = 0; index < 4; index++) expect((await client.response()).status).toBe(200);
    expect((await client.send(request).response()).status).toBe(200);
  });

  it('more than that is cut off, which is counted once', async () => {
    const client = await connect();
    client.send(request.repeat(100));
    await client.closed();
    expect(await issuer.registry.metrics()).toContain('tokens_total{result="malformed"} 1');
  });
});

it('a client that never reads its answers is cut off', async () => {
  // Answers of 20 kB: a few hundred fill what the kernel keeps.
  const scopes = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(80, 'x'));
  const service = await runIssuer([{ ...SHOP, scopes }], { limits: { ...LIMITS, pipelined: 100_000 } });
  onTestFinished(() => service.close(0));
  const accepted = Promise.withResolvers<Socket>();
  const onAccepted = (message: unknown): void => accepted.resolve((message as { socket: Socket }).socket);
  subscribe('net.server.socket', onAccepted);
  onTestFinished(() => void unsubscribe('net.server.socket', onAccepted));
  const client = await connectClient(service.address);
  client.socket.pause();
  client.send(request.repeat(1000));
  // The client sees no end before it has read what came before it.
  await once(await accepted.promise, 'close');
});

it('a connection whose request is being answered is not given up', async () => {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const secretHash = await hashSecret('s3cret', { ln: 1, r: 1, p: 1 });
  const service = await runIssuer([{ clientId: 'shop', secretHash }], {
    limits: LIMITS,
    async derive(...work) {
      begun.resolve();
      await gate.promise;
      return await deriveScrypt(...work);
    },
  });
  onTestFinished(() => service.close(0));
  const oldest = (await connectClient(service.address)).send(request);
  await begun.promise;
  const [second, third] = [await connectClient(service.address), await connectClient(service.address)];
  const newcomer = await connectClient(service.address);
  await second.closed();
  gate.resolve();
  for (const answered of [oldest, third.send(request), newcomer.send(request)]) {
    expect((await answered.response()).status).toBe(200);
  }
});
