// What programs do with Anthropic's API, done with the official client. The first
// argument is the address of an endpoint, the second of one that answers with 3
// tokens of reasoning. It ends with status 1 and says why if anything is not as it
// is with Anthropic.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { run, words } from './steps.mjs';

const [base, reasoningBase] = process.argv.slice(2);
const options = { apiKey: 'none', maxRetries: 0, timeout: 20_000 };
const client = new Anthropic({ ...options, baseURL: base });
const reasoning = new Anthropic({ ...options, baseURL: reasoningBase });
const model = 'sim';
const system = 'be brief';
const messages = [{ role: 'user', content: 'how are you' }];

await run('anthropic', {
  async create() {
    const answer = await client.messages.create({ model, system, messages, max_tokens: 5 });
    assert.deepEqual([answer.type, answer.role, answer.model], ['message', 'assistant', model]);
    assert.deepEqual(answer.content.map((c) => [c.type, words(c.text)]), [['text', 5]]);
    assert.deepEqual([answer.stop_reason, answer.stop_sequence], ['max_tokens', null]);
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = answer.usage;
    assert.deepEqual([input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens], [5, 0, 0, 5]);
  },

  async streaming() {
    const params = { model, system, messages, max_tokens: 6 };
    const types = [];
    let text = '';
    for await (const event of await client.messages.create({ ...params, stream: true })) {
      if (types.at(-1) !== event.type) types.push(event.type);
      if (event.type === 'content_block_delta') text += event.delta.text;
      if (event.type === 'message_delta') assert.deepEqual([event.delta.stop_reason, event.usage.output_tokens], ['max_tokens', 6]);
    }
    assert.deepEqual(types, ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop']);
    const whole = await client.messages.create(params);
    assert.equal(whole.content[0].text, text);
  },

  async helper() {
    const stream = client.messages.stream({ model, messages, max_tokens: 6 });
    let deltas = '';
    stream.on('text', (delta) => { deltas += delta; });
    const final = await stream.finalMessage();
    assert.equal(final.content[0].text, deltas);
    assert.equal(await stream.finalText(), deltas);
    assert.equal(words(deltas), 6);
    assert.deepEqual([final.usage.input_tokens, final.usage.output_tokens], [3, 6]);
  },

  async caching() {
    const text = Array.from({ length: 64 }, (_, i) => `word${i}`).join(' ');
    const ask = () => client.messages.create({
      model, max_tokens: 1, messages: [{ role: 'user', content: 'and now' }],
      system: [{ type: 'text', text, cache_control: { type: 'ephemeral' } }],
    }).then(({ usage: u }) => [u.input_tokens, u.cache_creation_input_tokens, u.cache_read_input_tokens]);
    assert.deepEqual(await ask(), [66, 0, 0]);
    assert.deepEqual(await ask(), [2, 0, 64]);
  },

  async end() {
    const end = await client.messages.create({ model, messages, max_tokens: 1000 });
    assert.equal(end.stop_reason, 'end_turn');
  },

  async reasoning() {
    const params = { model, messages, max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } };
    const whole = await reasoning.messages.create(params);
    assert.deepEqual(whole.content.map((c) => c.type), ['thinking', 'text']);
    assert.equal(words(whole.content[0].thinking), 3);
    const stream = reasoning.messages.stream(params);
    let thinking = '';
    stream.on('thinking', (delta) => { thinking += delta; });
    const final = await stream.finalMessage();
    assert.equal(thinking, whole.content[0].thinking);
    assert.deepEqual(final.content.map((c) => c.thinking ?? c.text), whole.content.map((c) => c.thinking ?? c.text));
    assert.ok(final.content[0].signature);

    // The next turn sends the blocks back. Those of reasoning are no input.
    const next = [...messages, { role: 'assistant', content: final.content }, { role: 'user', content: 'go on' }];
    const { usage } = await reasoning.messages.create({ ...params, messages: next });
    assert.equal(usage.input_tokens + usage.cache_read_input_tokens, 3 + words(final.content[1].text) + 2);
  },

  async errors() {
    const refused = (params, options) => client.messages.create({ model, messages, max_tokens: 5, ...params }, options).then(() => assert.fail('no error'), (e) => e);
    const fault = (kind) => ({ headers: { 'X-Moontide-Fault': kind } });
    const long = await refused({ max_tokens: 1e9 });
    assert.ok(long instanceof Anthropic.BadRequestError);
    assert.equal(long.error.error.type, 'invalid_request_error');
    assert.ok(await refused({ model: 'none' }) instanceof Anthropic.NotFoundError);
    const limited = await refused({}, fault('429'));
    assert.ok(limited instanceof Anthropic.RateLimitError);
    assert.equal(limited.headers.get('retry-after'), '1');
    assert.ok(await refused({}, fault('500')) instanceof Anthropic.InternalServerError);
    const stream = client.messages.stream({ model, messages, max_tokens: 20 }, fault('error'));
    const broken = await stream.finalMessage().then(() => assert.fail('no error'), (e) => e);
    assert.ok(broken instanceof Anthropic.APIError);
    assert.equal(broken.error.error.type, 'api_error');
  },
});
