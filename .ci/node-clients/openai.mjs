// What programs do with an OpenAI-compatible server, done with the official
// client. The first argument is the address of an endpoint, the second of one that
// answers with 3 tokens of reasoning. It ends with status 1 and says why if anything
// is not as it is with OpenAI.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { run, words } from './steps.mjs';

const [base, reasoningBase] = process.argv.slice(2);
const options = { apiKey: 'none', maxRetries: 0, timeout: 20_000 };
const client = new OpenAI({ ...options, baseURL: `${base}/v1` });
const reasoning = new OpenAI({ ...options, baseURL: `${reasoningBase}/v1` });
const model = 'sim';
const messages = [
  { role: 'system', content: 'be brief' },
  { role: 'user', content: 'how are you' },
];

await run('openai', {
  async models() {
    const list = await client.models.list();
    assert.deepEqual(list.data.map((m) => m.id), [model]);
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

  async responses() {
    const params = { model, instructions: 'be brief', input: 'how are you', max_output_tokens: 5 };
    const answer = await client.responses.create(params);
    assert.deepEqual([answer.object, answer.status, answer.incomplete_details.reason], ['response', 'incomplete', 'max_output_tokens']);
    assert.equal(words(answer.output_text), 5);
    const { input_tokens, input_tokens_details, output_tokens, output_tokens_details, total_tokens } = answer.usage;
    assert.deepEqual([input_tokens, output_tokens, total_tokens], [5, 5, 10]);
    assert.equal(input_tokens_details.cached_tokens, 0);
    assert.equal(output_tokens_details.reasoning_tokens, 0);

    const types = [];
    let text = '', last;
    for await (const event of await client.responses.create({ ...params, stream: true })) {
      assert.equal(event.sequence_number, last === undefined ? 0 : last.sequence_number + 1);
      if (last?.type !== event.type) types.push(event.type);
      if (event.type === 'response.output_text.delta') text += event.delta;
      last = event;
    }
    assert.deepEqual(types, ['created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta', 'output_text.done',
      'content_part.done', 'output_item.done', 'incomplete'].map((type) => `response.${type}`));
    assert.equal(text, answer.output_text);
    assert.deepEqual(last.response.usage, answer.usage);

    // A conversation goes on with the output of the turn before.
    const input = [{ role: 'user', content: 'how are you' }, ...answer.output, { role: 'user', content: 'go on' }];
    const next = await client.responses.create({ model, input });
    assert.equal(next.status, 'completed');
    assert.equal(next.usage.input_tokens, 3 + 5 + 2);
  },

  async responsesHelper() {
    const stream = client.responses.stream({ model, input: messages });
    let deltas = '';
    stream.on('response.output_text.delta', (event) => { deltas += event.delta; });
    const final = await stream.finalResponse();
    assert.equal(final.status, 'completed');
    assert.equal(final.output_text, deltas);
  },

  async reasoning() {
    const chat = await reasoning.chat.completions.create({ model, messages, max_tokens: 8 });
    const { reasoning_content, content } = chat.choices[0].message;
    assert.deepEqual([words(reasoning_content), words(content)], [3, 5]);
    assert.equal(chat.usage.completion_tokens_details.reasoning_tokens, 3);
    let thought = '', said = '';
    for await (const chunk of await reasoning.chat.completions.create({ model, messages, max_tokens: 8, stream: true })) {
      thought += chunk.choices[0].delta.reasoning_content ?? '';
      said += chunk.choices[0].delta.content ?? '';
    }
    assert.deepEqual([thought, said], [reasoning_content, content]);

    const response = await reasoning.responses.stream({ model, input: messages, max_output_tokens: 8 }).finalResponse();
    assert.deepEqual(response.output.map((item) => item.type), ['reasoning', 'message']);
    assert.deepEqual(response.output.map((item) => item.content[0].text), [thought, said]);
    assert.equal(response.output_text, said);
    assert.equal(response.usage.output_tokens_details.reasoning_tokens, 3);
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

    // Chat has the error in an event, which the client throws; responses has an event.
    const fault = { headers: { 'X-Moontide-Fault': 'error' } };
    const events = async (stream) => {
      const list = [];
      for await (const event of await stream) list.push(event);
      return list;
    };
    await assert.rejects(events(client.chat.completions.create({ model, messages, stream: true }, fault)), OpenAI.APIError);
    const broken = await events(client.responses.create({ model, input: messages, stream: true }, fault));
    assert.deepEqual([broken.at(-1).type, broken.at(-1).code], ['error', 'server_error']);
    assert.ok(await client.responses.create({ model: 'none', input: 'a' }).catch((e) => e) instanceof OpenAI.NotFoundError);
  },
});
