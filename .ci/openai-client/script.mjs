// What programs do with an OpenAI-compatible server, done with the official
// client against the address in the first argument. It ends with status 1 and
// says why if anything is not as it is with OpenAI.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const base = process.argv[2];
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0, timeout: 20_000 });
const model = 'sim';
const messages = [
  { role: 'system', content: 'be brief' },
  { role: 'user', content: 'how are you' },
];
const words = (text) => text.split(' ').filter(Boolean).length;

const steps = {
  async models() {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), [model]);
    assert.equal((await client.models.retrieve(model)).object, 'model');
    await assert.rejects(client.models.retrieve('none'), OpenAI.NotFoundError);
  },

  async chat() {
    const answer = await client.chat.completions.create({ model, messages, max_completion_tokens: 5 });
    assert.equal(answer.object, 'chat.completion');
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.equal(words(answer.choices[0].message.content), 5);
    assert.equal(answer.choices[0].finish_reason, 'length');
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [5, 5, 10]);
    assert.equal(answer.usage.prompt_tokens_details.cached_tokens, 0);
  },

  async completions() {
    const answer = await client.completions.create({ model, prompt: [1, 2, 3], max_tokens: 4 });
    assert.equal(answer.object, 'text_completion');
    assert.equal(words(answer.choices[0].text), 4);
    assert.equal(answer.usage.prompt_tokens, 3);
  },

  async streaming() {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 6, stream: true, stream_options: { include_usage: true } });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
    const text = chunks.map((c) => c.choices[0]?.delta.content ?? '').join('');
    assert.equal(words(text), 6);
    const usage = chunks.at(-1);
    assert.deepEqual(usage.choices, []);
    assert.equal(usage.usage.completion_tokens, 6);
    assert.equal(chunks.at(-2).choices[0].finish_reason, 'length');
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);

    const whole = await client.chat.completions.create({ model, messages, max_tokens: 6 });
    assert.equal(whole.choices[0].message.content, text);

    const legacy = await client.completions.create({ model, prompt: 'hello', max_tokens: 3, stream: true });
    let said = '';
    for await (const chunk of legacy) said += chunk.choices[0].text;
    assert.equal(words(said), 3);
  },

  async helper() {
    const stream = client.chat.completions.stream({ model, messages, max_tokens: 6 });
    let deltas = '';
    stream.on('content', (delta) => { deltas += delta; });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].message.content, deltas);
    assert.equal(words(deltas), 6);
  },

  async stop() {
    const free = await client.completions.create({ model, prompt: 'hello', max_tokens: 20 });
    const stop = free.choices[0].text.split(' ')[8];
    const answer = await client.completions.create({ model, prompt: 'hello', max_tokens: 20, stop: [` ${stop} `, ` ${stop}`] });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.ok(free.choices[0].text.startsWith(answer.choices[0].text));
    assert.ok(words(answer.choices[0].text) < 8);
  },

  async abort() {
    const controller = new AbortController();
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 100_000, stream: true }, { signal: controller.signal });
    for await (const _ of stream) {
      controller.abort();
      break;
    }
    const running = async () => {
      const text = await (await fetch(`${base}/metrics`)).text();
      return /^vllm:num_requests_running\{[^}]*\} (\d+)$/m.exec(text)[1];
    };
    for (let tries = 0; (await running()) !== '0'; tries++) {
      assert.ok(tries < 500, 'a request that was aborted still runs');
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },

  async errors() {
    const refused = (params) => client.chat.completions.create({ model, messages, ...params }).then(() => assert.fail('no error'), (e) => e);
    const tools = await refused({ tools: [{ type: 'function', function: { name: 'f' } }] });
    assert.ok(tools instanceof OpenAI.BadRequestError);
    assert.deepEqual([tools.status, tools.type, tools.param, tools.code], [400, 'invalid_request_error', 'tools', 'unsupported_value']);
    const long = await refused({ max_tokens: 1e9 });
    assert.equal(long.code, 'context_length_exceeded');
    assert.ok(await refused({ model: 'none' }) instanceof OpenAI.NotFoundError);
    const limited = await client.chat.completions.create({ model, messages }, { headers: { 'X-Moontide-Fault': '429' } }).catch((e) => e);
    assert.ok(limited instanceof OpenAI.RateLimitError);
    assert.equal(limited.headers.get('retry-after'), '1');
  },
};

for (const [name, step] of Object.entries(steps)) {
  await step().catch((e) => {
    console.error(`${name}:`, e);
    process.exit(1);
  });
  console.log(`${name}: as it should be`);
}
