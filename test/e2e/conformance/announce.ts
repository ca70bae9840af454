/**
 * What the suite starts as the server under test, as `announce.ts HOST PORT [CERTIFICATE]`: it says where the sidecar is, and by which
 * certificate that is known over TLS. It lives until it is told to end.
 */

import { readFileSync } from 'node:fs';
import { delimited, field } from './messages.ts';

const [host = '', port = '', certificate] = process.argv.slice(2);
const isKnownBy = certificate === undefined ? [] : [field(3, readFileSync(certificate, 'utf8'))];
process.stdout.write(delimited(field(1, host), field(2, Number(port)), ...isKnownBy));
setInterval(() => {}, 2 ** 30);
