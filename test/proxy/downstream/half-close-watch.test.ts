import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ReadSocketTables, socketNames } from '../../../src/platform/net/socket-tables.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { HalfCloseWatch } from '../../../src/proxy/downstream/half-close-watch.ts';
import { findPeers } from '../../../src/proxy/io/peer-socket.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type TablesRead = Awaited<ReturnType<ReadSocketTables>>;

async function pair(listen = '127.0.0.1', host = listen): Promise<{ accepted: Socket; peer: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, listen);
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const peer = connect({ host, port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [accepted] = (await accepting) as [Socket];
  onTestFinished(() => {
    peer.destroy();
    accepted.destroy();
    server.close();
  });
  return { accepted, peer };
}

/** On which no pause is long: looks at the kernel's table take their time on a busy machine, and pauses many times as long. */
const hastyClock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => systemClock.after(Math.min(delayMs, 50), callback),
};

/** Resolves when the watch says that the peer has left. */
function left(socket: Socket): Promise<void> {
  return new Promise((resolve) => new HalfCloseWatch(hastyClock, { findPeers }).watch(socket, resolve));
}

describe.each([
  ['IPv4', '127.0.0.1', '127.0.0.1'],
  ['IPv6', '::1', '::1'],
  ['IPv4 to a listener for both', '::', '127.0.0.1'],
])('the peer socket of a connection over %s', (_, listen, host) => {
  it('is found until it is closed, also after a half-close', async () => {
    const { accepted, peer } = await pair(listen, host);
    const ended = once(accepted.resume(), 'end');
    peer.end();
    await ended;
    let gone = false;
    const watch = new HalfCloseWatch(hastyClock, { findPeers });
    const leaving = new Promise<void>((resolve) => {
      watch.watch(accepted, () => {
        gone = true;
        resolve();
      });
    });
    // Whoever came to the kernel's table first has been looked for as well.
    const stranger = await pair(listen, host);
    stranger.peer.destroy();
    await once(stranger.accepted.resume(), 'end');
    await new Promise<void>((resolve) => {
      watch.watch(stranger.accepted, resolve);
    });
    expect(gone).toBe(false);

    peer.destroy();

    await leaving;
  });
});

describe('a peer that closed its half-closed connection', () => {
  it('is reported once it has closed', async () => {
    const { accepted, peer } = await pair();
    peer.destroy();
    await once(accepted.resume(), 'end');
    await left(accepted);
  });

  it('is reported when the connection is closed on this side', async () => {
    const { accepted } = await pair();
    accepted.destroy();
    await left(accepted);
  });
});

/** Tables as the kernel writes them, with one row a socket, and how often they were read. */
class FakeTables {
  readonly clock = new ManualClock();
  rows: string[] = [];
  lookMs = 0;
  looks = 0;
  bytes = 0;
  read: TablesRead = 'whole';
  running = 0;
  most = 0;

  readonly findPeers = (accepted: readonly Socket[]) => findPeers(accepted, this.#read);

  readonly #read = async (take: (piece: Buffer) => void): Promise<TablesRead> => {
    this.looks++;
    this.running++;
    this.most = Math.max(this.most, this.running);
    const text = Buffer.from(['  sl  local_address rem_address   st\n', ...this.rows].join(''), 'latin1');
    for (let at = 0; at < text.length; at += 100) {
      take(text.subarray(at, at + 100));
      this.bytes += Math.min(100, text.length - at);
    }
    if (this.lookMs > 0) await new Promise<void>((resolve) => this.clock.after(this.lookMs, resolve));
    this.running--;
    return this.read;
  };
}

function row(name: string, inode: number): string {
  return `   0: ${name} 08 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0000000000000000 20 0 0 10 -1\n`;
}

function socket(port: number): Socket {
  return {
    localAddress: '127.0.0.1',
    localPort: 15080,
    remoteAddress: '127.0.0.1',
    remotePort: port,
  } as Socket;
}

function nameOf(port: number): string {
  return socketNames(socket(port), 'peers')[0] as string;
}

describe('reading the kernel’s socket tables', () => {
  it('answers all watchers with one reading, and no two run at once', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.lookMs = 10;
    const gone: number[] = [];
    for (let port = 1000; port < 1100; port++) {
      tables.rows.push(row(nameOf(port), port % 2));
      watch.watch(socket(port), () => gone.push(port));
    }

    await tables.clock.advance(60);

    expect(tables.looks).toBe(1);
    expect(gone).toHaveLength(50);
    expect(gone.every((port) => port % 2 === 0)).toBe(true);
    for (let port = 2000; port < 2100; port++) {
      watch.watch(socket(port), () => gone.push(port));
      await tables.clock.advance(5);
    }
    expect(tables.most).toBe(1);
  });

  it('takes at most a twentieth of the time, whatever the load and the size of the tables', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.lookMs = 70;
    for (let port = 1000; port < 9000; port++) tables.rows.push(row(nameOf(port), 0));
    const seconds = 30;
    for (let aborts = 0; aborts < 50 * seconds; aborts++) {
      watch.watch(socket(1000 + aborts), () => {});
      await tables.clock.advance(20);
    }

    expect(tables.looks).toBeGreaterThan(10);
    expect((tables.looks * tables.lookMs) / (seconds * 1000)).toBeLessThan(0.05);
    expect(tables.bytes).toBeLessThan((tables.looks + 1) * 8001 * 150);
  });

  it('stops while no connection is watched', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    const end = watch.watch(socket(1000), () => {});
    end();
    await tables.clock.advance(10_000);
    expect(tables.looks).toBe(0);
    expect(tables.clock.pendingTimers).toBe(0);
  });

  it('reports nothing to a watcher that ended during the reading', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.rows = [row(nameOf(1000), 0)];
    tables.lookMs = 100;
    let told = false;
    const end = watch.watch(socket(1000), () => {
      told = true;
    });
    await tables.clock.advance(60);
    expect(tables.running).toBe(1);
    end();
    await tables.clock.advance(1000);
    expect([told, tables.looks]).toEqual([false, 1]);
  });

  it('repeats once a second for peers that are still there', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.rows = [row(nameOf(1000), 7)];
    let gone = false;
    watch.watch(socket(1000), () => {
      gone = true;
    });
    await tables.clock.advance(5050);
    expect(tables.looks).toBe(6);
    expect(gone).toBe(false);
    tables.rows = [row(nameOf(1000), 0)];
    await tables.clock.advance(1000);
    expect(gone).toBe(true);
    await tables.clock.advance(5000);
    expect(tables.looks).toBe(7);
  });

  it('reports a peer that is in no table only after the second reading', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    let gone = false;
    watch.watch(socket(1000), () => {
      gone = true;
    });
    await tables.clock.advance(50);
    expect([tables.looks, gone]).toEqual([1, false]);
    tables.rows = [row(nameOf(1000), 7)];
    await tables.clock.advance(250);
    tables.rows = [];
    await tables.clock.advance(1000);
    expect([tables.looks, gone]).toEqual([3, false]);
    await tables.clock.advance(250);
    expect([tables.looks, gone]).toEqual([4, true]);
  });

  it('reports a peer as closed if there are no tables to read', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.read = 'absent';
    let gone = false;
    watch.watch(socket(1000), () => {
      gone = true;
    });
    await tables.clock.advance(50);
    expect(gone).toBe(true);
  });

  it('reports no peer as closed while the tables cannot be read, as without free descriptors', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.read = 'broken';
    let gone = false;
    watch.watch(socket(1000), () => {
      gone = true;
    });
    await tables.clock.advance(10_000);
    expect(gone).toBe(false);
    tables.read = 'whole';
    tables.rows = [row(nameOf(1000), 0)];
    await tables.clock.advance(1000);
    expect(gone).toBe(true);
  });

  it('goes on within 15 s after the process stood still during a reading', async () => {
    const tables = new FakeTables();
    const watch = new HalfCloseWatch(tables.clock, tables);
    tables.rows = [row(nameOf(1000), 7)];
    tables.lookMs = 60_000;
    let gone = false;
    watch.watch(socket(1000), () => {
      gone = true;
    });
    await tables.clock.advance(60_050);
    tables.lookMs = 0;
    tables.rows = [row(nameOf(1000), 0)];

    await tables.clock.advance(15_000);

    expect(gone).toBe(true);
  });
});

it('a process without free descriptors reports no peer as closed', async () => {
  const program = `
    import { closeSync, openSync } from 'node:fs';
    import { connect, createServer } from 'node:net';
    import { findPeers } from './src/proxy/io/peer-socket.ts';
    const server = createServer(async (accepted) => {
      const files = [];
      try { for (;;) files.push(openSync('/dev/null')); } catch {}
      const without = await findPeers([accepted]);
      for (const file of files) closeSync(file);
      console.log(...without, ...(await findPeers([accepted])));
      process.exit();
    });
    server.listen(0, '127.0.0.1', () => connect(server.address().port, '127.0.0.1'));`;
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    'ulimit -n 64; exec "$0" --input-type=module --eval "$1"',
    process.execPath,
    program,
  ]);

  expect(stdout.trim()).toBe('unasked held');
});
