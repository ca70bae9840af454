import { expect, it } from 'vitest';
import { reasonToLeaveOut } from '../../mutation/plugins/words-for-people.ts';

const text = (value: string) => ({ type: 'StringLiteral', value });
const name = (identifier: string) => ({ type: 'Identifier', name: identifier });
const call = (object: string, method: string) => ({
  type: 'CallExpression',
  callee: { type: 'MemberExpression', object: name(object), property: name(method) },
});
const construction = (of: string) => ({ type: 'NewExpression', callee: name(of) });

it.each([
  ['what a log line says', text('a token came'), call('log', 'info')],
  ['the fields of a log line', { type: 'ObjectExpression' }, call('log', 'warn')],
  ['the text of an error', text('it is not a URL'), construction('SidecarError')],
])('leaves out %s', (_, node, parent) => {
  expect(reasonToLeaveOut({ node, parent, listKey: 'arguments' })).toBeTypeOf('string');
});

it('leaves out a sentence wherever it stands', () => {
  const template = {
    type: 'TemplateLiteral',
    quasis: [{ value: { raw: 'status ' } }, { value: { raw: ' where a token was meant' } }],
  };
  const parent = call('answers', 'invalid');
  expect(reasonToLeaveOut({ node: template, parent, listKey: 'arguments' })).toBeTypeOf('string');
  expect(reasonToLeaveOut({ node: text('an object was expected'), parent })).toBeTypeOf('string');
});

it('leaves out the help of a metric', () => {
  const parent = { type: 'ObjectProperty', key: name('help') };
  expect(reasonToLeaveOut({ node: text('Expiry'), parent })).toBeTypeOf('string');
});

it.each([
  ['the code of an error', text('bad_request'), construction('SidecarError')],
  ['what another object is told', text('no token'), call('state', 'info')],
  ['what another method of a logger is told', text('token'), call('log', 'child')],
  ['a field name', text('Proxy-Authorization'), { type: 'ReturnStatement' }],
  ['a status line', text('HTTP/1.1 100 Continue\r\n'), call('socket', 'write')],
])('keeps %s', (_, node, parent) => {
  expect(reasonToLeaveOut({ node, parent, listKey: 'arguments' })).toBeUndefined();
});
