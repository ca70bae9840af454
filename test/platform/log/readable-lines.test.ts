import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { LogOutput } from '../../../src/platform/log/output.ts';
import { readableLine } from '../../../src/platform/log/readable-lines.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { MAIN, SURROUNDINGS } from '../../support/run-command.ts';

const PLAIN = { colour: false };
const line = (fields: object) =>
  `${JSON.stringify({ level: 'info', time: '2026-11-22T22:14:03.120Z', ...fields })}\n`;
const withoutTime = (text: string) => text.replace(/^\d\d:\d\d:\d\d {2}/, '');
const readable = (fields: object) => withoutTime(readableLine(line(fields), PLAIN));

describe('a line for a person', () => {
  it('has time, level, message and facts', () => {
    expect(readableLine(line({ proxy: '127.0.0.1:15080', routes: 2, msg: 'listening' }), PLAIN)).toMatch(
      /^\d\d:\d\d:\d\d {2}INFO {3}listening {2}proxy=127\.0\.0\.1:15080 routes=2\n$/,
    );
    expect(readable({ level: 'warn', msg: 'x' })).toBe('WARN   x\n');
  });

  it('puts what has spaces in quotes, and shows the rest as JSON', () => {
    expect(readable({ msg: 'm', detail: 'status 401', held: { ends: [1] }, none: null, quote: '"' })).toBe(
      'INFO   m  detail="status 401" held={"ends":[1]} none=null quote="\\""\n',
    );
  });

  it('tells an error by its messages, down to the cause', () => {
    const err = {
      message: 'no tunnel',
      code: 'E1',
      cause: { message: 'connect ECONNREFUSED', code: 'ECONNREFUSED' },
    };
    expect(readable({ level: 'error', msg: 'm', err })).toBe(
      'ERROR  m  err="no tunnel (E1): connect ECONNREFUSED"\n',
    );
  });

  it('lets no character through that a terminal obeys', () => {
    const hostile = '\u001b[2J\u009b31m\r\n\u202e\u2028';
    const shown = readable({
      msg: hostile,
      [hostile]: hostile,
      err: { message: hostile },
      deep: { a: hostile },
    });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(shown.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2028]/);
    expect(shown.endsWith('\n')).toBe(true);
  });

  it('is coloured where colours are wanted', () => {
    expect(readableLine(line({ msg: 'm' }), { colour: true })).toContain('\u001b[32mINFO');
  });

  it.each(['Status page: http://127.0.0.1:15081/\n', '{"level":broken\n', '{"other":1}\n', '\n'])(
    'stays as it is where the logger has not written it: %j',
    (text) => expect(readableLine(text, PLAIN)).toBe(text),
  );
});

it('what the output itself says of lost lines is readable, too', () => {
  const written: string[] = [];
  const target = {
    write: (bytes: Uint8Array) => written.push(Buffer.from(bytes).toString()) && bytes.length,
  };
  const output = new LogOutput(target, systemClock, (text) => readableLine(text, PLAIN));
  output.write(line({ msg: 'x'.repeat(70_000) }));
  expect(withoutTime(written.join(''))).toMatch(/^WARN {3}a log line was too long {2}bytes=\d+\n$/);
});

describe.runIf(process.platform === 'linux')('the program', () => {
  /** What a sidecar writes to a terminal, which script(1) gives it, up to its first line. */
  async function firstLine(env: Readonly<Record<string, string>>): Promise<string> {
    const command = `exec '${process.execPath}' '${MAIN}' proxy`;
    const terminal = spawn('script', ['--quiet', '--flush', '--command', command, '/dev/null'], {
      env: {
        ...SURROUNDINGS,
        TERM: 'xterm',
        TOKEN_SIDECAR_TOKEN_URL: 'http://127.0.0.1:1/token',
        TOKEN_SIDECAR_UPSTREAM: 'http://127.0.0.1:1',
        TOKEN_SIDECAR_CREDENTIALS_DIR: '/nonexistent',
        TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
        TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
        ...env,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let output = '';
    let isAsked = false;
    for await (const chunk of terminal.stdout.setEncoding('utf8')) {
      output += chunk;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those of colours.
      const plain = output.replace(/\u001b\[\d+m/g, '');
      const [, admin] = /admin"?[=:]"?(127\.0\.0\.1:\d+)[^\n]*\n/.exec(plain) ?? [];
      if (isAsked || admin === undefined) continue;
      isAsked = true;
      await fetch(`http://${admin}/quitquitquit`, { method: 'POST' });
    }
    return output.split('\n').find((text) => text.includes('listening')) ?? output;
  }

  it('is read by a person at a terminal, in colour or without', async () => {
    expect(await firstLine({ NO_COLOR: '1' })).toMatch(/^\d\d:\d\d:\d\d {2}INFO {3}listening {2}proxy=127/);
    expect(await firstLine({})).toContain('\u001b[32mINFO');
  });

  it('is read by a collector in a pod, whatever its terminal', async () => {
    const text = await firstLine({ KUBERNETES_SERVICE_HOST: '10.0.0.1' });
    expect(JSON.parse(text)).toMatchObject({ level: 'info', msg: 'listening' });
  });
});
