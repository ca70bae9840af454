import { describe, expect, it } from 'vitest';
import { readFlags } from '../../src/config/settings.ts';
import { REDIRECT_SETTINGS, readRedirectRequest } from '../../src/redirect/settings.ts';

const read = (...args: string[]) => readRedirectRequest(readFlags(REDIRECT_SETTINGS, args, {}));

describe('what is redirected', () => {
  it('is HTTP and HTTPS of everybody but the sidecar, where nothing is said', () => {
    expect(read()).toEqual({
      kind: 'install',
      redirection: {
        port: 15_083,
        capturedPorts: [
          { first: 80, last: 80 },
          { first: 443, last: 443 },
        ],
        refusedUdpPorts: [{ first: 443, last: 443 }],
        excludedPorts: [],
        excludedRanges: [],
        exemptUser: 65_532,
      },
    });
    expect(read('--remove')).toEqual({ kind: 'remove' });
  });

  it('may leave all of UDP as it is', () => {
    expect(read('--refused-udp-ports', 'none')).toMatchObject({ redirection: { refusedUdpPorts: [] } });
  });

  it('is refused all at once where it is not understood', () => {
    const wrong = ['--ports', '443-80', '--exempt-user', '0', '--excluded-ranges', '10.0.0.0/33'];
    expect(() => read(...wrong)).toThrow(
      /--ports: "443-80": expected .*--excluded-ranges: "10\.0\.0\.0\/33": expected .*--exempt-user: "0": expected /s,
    );
  });
});

describe('ports', () => {
  it.each([
    ['80', [[80, 80]]],
    [
      '80, 8000-8100',
      [
        [80, 80],
        [8000, 8100],
      ],
    ],
    ['1-65535', [[1, 65_535]]],
  ])('%s', (text, ranges) => {
    const capturedPorts = ranges.map(([first, last]) => ({ first, last }));
    expect(read('--ports', text)).toMatchObject({ redirection: { capturedPorts } });
  });

  it.each(['', '0', '65536', '80,', '80-', 'http', '90-80', Array(65).fill('80').join(',')])(
    'not %s',
    (text) => {
      expect(() => read('--ports', text)).toThrow('--ports: ');
    },
  );
});

describe('ranges of addresses', () => {
  it.each([
    ['10.0.0.0/8', 4, '0a000000', 8],
    ['169.254.169.254', 4, 'a9fea9fe', 32],
    ['fd00::/8', 6, 'fd000000000000000000000000000000', 8],
    ['::1', 6, '00000000000000000000000000000001', 128],
    ['2001:db8::a:0:1/64', 6, '20010db8000000000000000a00000001', 64],
    ['::ffff:10.0.0.1', 6, '00000000000000000000ffff0a000001', 128],
  ])('%s', (text, family, octets, prefix) => {
    const range = { family, prefix, address: Buffer.from(octets, 'hex') };
    expect(read('--excluded-ranges', text)).toMatchObject({ redirection: { excludedRanges: [range] } });
  });

  it.each(['10.0.0.0/33', '10.0.0/8', 'fd00::/129', '::g', 'a.example.com', '10.0.0.1/', ''])(
    'not %s',
    (text) => {
      expect(() => read('--excluded-ranges', text)).toThrow('--excluded-ranges: ');
    },
  );
});
