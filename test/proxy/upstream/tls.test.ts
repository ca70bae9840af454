import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { RouteConfig, TlsConfig } from '../../../src/config/config.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { UpstreamTls } from '../../../src/proxy/upstream/tls.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';

describe('the TLS files of a route', () => {
  const one = selfSigned('one.test');
  const two = selfSigned('two.test');
  let directory: string;
  let clock: ManualClock;
  let changes: number;
  let lines: string[];
  let used: string[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'token-sidecar-tls-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    clock = new ManualClock();
    changes = 0;
    lines = [];
    used = [];
    await write('ca.crt', one.cert);
    await write('tls.crt', one.cert);
    await write('tls.key', one.key);
  });

  function write(name: string, content: string): Promise<void> {
    return writeFile(join(directory, name), content);
  }

  function open(tls: TlsConfig): UpstreamTls {
    const opened = new UpstreamTls({ name: 'api', tls } as RouteConfig, {
      clock,
      log: createLogger('trace', { write: (line) => lines.push(line) }),
      onChange: () => {
        changes += 1;
      },
      observer: { certificatesInUse: (file) => used.push(file) },
    });
    onTestFinished(() => opened.close());
    return opened;
  }

  function openAll(): UpstreamTls {
    const at = (name: string): string => join(directory, name);
    return open({ caFile: at('ca.crt'), certFile: at('tls.crt'), keyFile: at('tls.key') });
  }

  /** Lets the look that is due come to its end. */
  async function look(): Promise<void> {
    await clock.advance(10_000);
    expect(clock.pendingTimers).toBe(1);
  }

  it('are used after they changed, and sessions are not resumed', async () => {
    const tls = openAll();
    const { context } = tls;
    tls.remember(Buffer.from('session'), context);
    expect(tls.session?.toString()).toBe('session');
    expect(used).toEqual(['caFile', 'certFile']);

    await write('ca.crt', two.cert);
    await look();

    expect(tls.context).not.toBe(context);
    expect(tls.session).toBeUndefined();
    expect(changes).toBe(1);
    expect(used).toEqual(['caFile', 'certFile', 'caFile', 'certFile']);
    tls.remember(Buffer.from('late'), context);
    expect(tls.session).toBeUndefined();
  });

  it('written again unchanged change nothing', async () => {
    const tls = openAll();
    const { context } = tls;
    await write('ca.crt', one.cert);
    await look();
    expect(tls.context).toBe(context);
    expect(changes).toBe(0);
    expect(lines).toEqual([]);
  });

  it.each([
    ['half replaced', 'tls.crt', two.cert],
    [
      'no certificate any more',
      'ca.crt',
      '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n',
    ],
  ])('%s stay as they were read until they are usable', async (_, name, content) => {
    const tls = openAll();
    const { context } = tls;
    await write(name, content);
    await look();
    expect(tls.context).toBe(context);
    expect(lines.join()).toContain('stay in use');
    expect(lines.join()).not.toContain('PRIVATE KEY');

    await write('ca.crt', two.cert);
    await write('tls.crt', two.cert);
    await write('tls.key', two.key);
    await look();
    expect(tls.context).not.toBe(context);
    expect(changes).toBe(1);
  });

  it.each([
    ['cannot be read', 'missing.crt'],
    ['hold no certificate', 'tls.key'],
  ])('that %s at the start are a configuration error', (_, name) => {
    expect(() => open({ caFile: join(directory, name) })).toThrow(
      expect.objectContaining({
        code: 'configuration',
        message: expect.stringMatching(/^route api: tls/),
        cause: expect.any(Error),
      }),
    );
  });

  it('that cannot be read are named', () => {
    expect(() => open({ certFile: '/nonexistent/tls.crt' })).toThrow(
      /tls\.certFile \/nonexistent\/tls\.crt cannot be read/,
    );
  });

  it('are logged when they change and when they are unusable', async () => {
    openAll();
    await write('ca.crt', two.cert);
    await look();
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'info', route: 'api' });
    await write('ca.crt', 'nonsense');
    await look();
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({
      level: 'warn',
      route: 'api',
      reason: expect.any(String),
    });
  });

  it('are not read after being closed, even amid a reading', async () => {
    const tls = openAll();
    tls.close();
    expect(clock.pendingTimers).toBe(0);
    // Waits for no reading.
    clock = new ManualClock(async () => {});
    const other = openAll();
    await write('ca.crt', two.cert);
    await clock.advance(10_000);
    expect(changes).toBe(0);
    other.close();
    await until(() => changes !== 0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(clock.pendingTimers).toBe(0);
  });

  it('are checked every ten seconds', async () => {
    openAll();
    await write('ca.crt', two.cert);
    await clock.advance(9999);
    expect(changes).toBe(0);
    await clock.advance(1);
    await until(() => changes !== 0);
  });

  it('are not checked if there are none', () => {
    expect(open({}).context).toBeDefined();
    expect(clock.pendingTimers).toBe(0);
  });
});
